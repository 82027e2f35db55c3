"""Makes the app's icon font anew: `python -m tests.symbols`, after `pip install fonttools brotli`.

Streamlit ships all of Material Symbols (Google, Apache 2.0), 375 kB of a first visit's 1,370. The app's own file holds
the icons that the app names and those that Streamlit's own scripts name, and nothing else.

* `named()`: the names of these icons; `LACKING`: those that Streamlit's font lacks, too.
"""

import re
from pathlib import Path
from typing import Final

from streamlit.file_util import get_static_dir

from qkdemo.web.first.symbols import FONT, NAMES
from tests.serving import ROOT

_NAME: Final = re.compile(r":material/([a-z0-9_]+)")
_SCRIPTS: Final = Path(get_static_dir(), "static", "js")
LACKING: Final = {"star_filled"}  # named by a script of Streamlit, and in its own font neither
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789_"


def named() -> set[str]:
    """Every icon that a source of ours, or a script of the Streamlit that is installed, names."""
    ours = [path for place in (ROOT / "qkdemo", ROOT / "pages") for path in place.rglob("*.py")]
    texts = [*ours, *(ROOT / "qkdemo").rglob("*.toml"), *(ROOT / "qkdemo").rglob("*.js"), *_SCRIPTS.glob("*.js")]
    return {name for path in texts for name in _NAME.findall(path.read_text(encoding="utf-8"))}


def main() -> None:
    """Write the font, and the names of what is in it."""
    from fontTools import subset  # noqa: PLC0415  needed here alone
    from fontTools.ttLib import TTFont  # noqa: PLC0415

    (whole,) = Path(get_static_dir(), "static", "media").glob("MaterialSymbols-Rounded.*.woff2")
    font = TTFont(whole)
    (table,) = font["GSUB"].table.LookupList.Lookup
    made = {
        "".join(chr(code) for code in _codes(font, (first, *ligature.Component))): ligature.LigGlyph
        for part in (getattr(each, "ExtSubTable", each) for each in table.SubTable)
        for first, ligatures in part.ligatures.items()
        for ligature in ligatures
    }
    names = sorted(named() & made.keys())
    options = subset.Options()
    options.layout_features, options.layout_closure, options.glyph_names = ["*"], False, False
    options.flavor = "woff2"
    subsetter = subset.Subsetter(options)
    subsetter.populate(glyphs=[made[name] for name in names], text=_LETTERS)
    subsetter.subset(font)
    subset.save_font(font, str(FONT), options)
    NAMES.write_text("\n".join(names) + "\n", encoding="utf-8")
    lacking = sorted(named() - made.keys() - LACKING)
    print(f"{len(names)} icons, {FONT.stat().st_size} bytes; not in the font: {lacking}")


def _codes(font: object, glyphs: tuple[str, ...]) -> list[int]:
    by_glyph = {glyph: code for code, glyph in font.getBestCmap().items()}  # type: ignore[attr-defined]
    return [by_glyph[glyph] for glyph in glyphs]


if __name__ == "__main__":
    main()
