"""What stands below a figure that leaves the app.

* `caption(lab, settings, link)`: the settings with the seed, the versions, and where the page is live.
"""

from collections.abc import Collection

import numpy as np
import torch

from qkdemo.dials import Dials, declarations
from qkdemo.messages import say


def caption(lab: str, settings: Dials, link: str = "", *, without: Collection[str] = (), less: str = "") -> str:
    """What a figure needs beside it to be made again. `without` are dials that the figure shows as axes."""
    dials = [each for each in declarations(type(settings)) if each.acts_for(settings) and each.name not in without]
    stated = ", ".join(f"{each.name}={each.write(getattr(settings, each.name))}" for each in dials)
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    return say("figure.caption", lab=lab, settings=stated, less=less, link=link, **versions).strip()
