"""A lab on somebody's own q and k, from a shell: `qkdemo drift --tensors FILE`.

* `on_file(lab, file, given)`: the lab on the q and k of a file; says what of the file it takes.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qkdemo.diagnose.drift import in_words, opened
from qkdemo.diagnose.findings.examine import examine_path
from qkdemo.diagnose.readers.inputs import InputError
from qkdemo.dials import SettingsError
from qkdemo.labs.lab import Command
from qkdemo.messages import say


def on_file(lab: Command, file: str, given: Mapping[str, str | None]) -> Command:
    """The lab on q and k of `file`: its base and named states, where the page puts it; says what it takes of the file.

    Raises InputError for a file that holds none, SettingsError for a `given` dial of what is drawn.
    """
    for name, text in given.items():
        if text is not None and name in lab.drawn:
            raise SettingsError(say("error.drawn", name=name))
    pair = examine_path(Path(file)).pair
    if pair is None or lab.on is None:
        raise InputError("drift_no_pair", name=Path(file).name)
    found = opened(pair)
    dials = {name: lab.settings.from_text(name, text) for name, text in found.dials.items()}
    presets = {name: lab.on(preset, found.inputs) for name, preset in lab.presets.items()}
    print(in_words(found, Path(file).name), file=sys.stderr)
    return replace(lab, base=lab.on(lab.base.but(**dials), found.inputs), presets=presets)
