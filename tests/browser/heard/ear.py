"""What is heard on the way through a page by keyboard alone, compared with what is written in this folder.

* `Ear(page, name)`: listens; `name` is that of the file.
* `to(role, words)`: Tab until that has the focus; all that is passed is written down as it is heard.
* `press(*keys)`: and what has the focus then.
* `section(title)`: what was passed, what has the focus, what the page's polite status has said since the last section,
  and the page's tree in reading order: role, name, value, state. It waits until the page is as it is written.
* `close()`: nothing that is written was left out; with `REWRITE` in the environment the file is written anew.

Names and values are compared letter by letter, but of sentences (headings, paragraphs, what is said, pieces of running
text) only how they begin: other tests read them. A number may differ in its last places, since processors round in ways
of their own. Of what is `live`, a run that was trained just now, the words alone are compared. In the file
`… 3–9 as before` stands for these lines of the tree above.
"""

import math
import os
import re
from difflib import SequenceMatcher, unified_diff
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

FOLDER: Final = Path(__file__).parent
REWRITE: Final = "QKDEMO_HEARD"
PATIENCE_MS: Final = 30_000
LOOK_MS: Final = 200
RESTS_MS: Final = 1200  # without a change, when the file is written
CLOSE: Final = 0.02
LEAST: Final = 3  # lines that are worth a reference
_NUMBER: Final = re.compile(r"\d+(?:[\u202f.]\d+)*(?:·10[⁻⁰¹²³⁴-⁹]+)?")
_CROSS: Final = re.compile(r" [^.]+ cross near [\d.]+\.")  # of a run that is trained here: where rounding takes them
_BEGINS: Final = re.compile(  # a colon in the words brings marks of quotation around them
    r"(?m)^( {4,}- '?(?:text|link|button)| *- '?(?:heading|paragraph|listitem|strong)|said|focus):? \"?(.*)"
)
_LEVEL: Final = re.compile(r"(?m)^ *- '?heading .*(\[level=\d\])")
_ADDRESS: Final = re.compile(r"\n *- /url: .*")
_NOTHING: Final = re.compile(r"(?m)^ *- (?:paragraph|text|cell|status|img)\n")
_TWICE: Final = re.compile(
    r'(?m)^( *- .*"(.+)".*):\n *- (?:paragraph|text): "?\2"?$'
)  # a label, and the text that it is from
_BARE: Final = re.compile(r"(?m)^( *)(- (?:link|button|heading) .*):$(?!\n\1 )")
_SAVES: Final = re.compile(r"(?m)^( *- '?button \"(?:Listen|PNG|SVG): .*): (?:Listen|PNG|SVG)$")
_RAISED: Final = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_SLIDER: Final = re.compile(r'(- slider ".*?"(?: \[.*?\])*): .*')
_BEFORE: Final = re.compile(r"… (\d+)–(\d+) as before")
# Everything that the status says from now on.
_HEAR: Final = """() => { window.said = []; const status = document.querySelector('#qkdemo-status');
  new MutationObserver(() => status.textContent && said.push(status.textContent)).observe(status,
    {childList: true, characterData: true, subtree: true}); }"""
_LEVELS: Final = "(all) => all.map((node) => [JSON.stringify(node.textContent), node.ariaLevel])"
# The values of all sliders as they are read, in the order of the page.
_VALUES: Final = """(top) => { const found = [];
  const walk = (root) => { for (const node of root.querySelectorAll('*')) {
    if (node.matches('input[type=range], [role=slider]') && node.checkVisibility({visibilityProperty: true}))
      found.push(node.getAttribute('aria-valuetext') ?? node.value);
    if (node.shadowRoot) walk(node.shadowRoot); } };
  walk(top); return found; }"""


class Ear:
    """One who hears the page and has a keyboard."""

    def __init__(self, page: Page, name: str, *, live: bool = False) -> None:
        self.page, self.live = page, live
        self.file = FOLDER / f"{name}.yaml"
        self.writes = bool(os.environ.get(REWRITE))
        self.sections = [] if self.writes else _whole(self.file.read_text(encoding="utf-8").strip("\n").split("\n\n"))
        self.at = 0
        self.way: list[str] = []
        page.evaluate(_HEAR)

    def to(self, role: str, words: str = "", most: int = 60) -> None:
        """Tab, until what has this role and a name with these words has the focus."""
        for _ in range(most):
            self.press("Tab")
            if re.match(rf"Tab: {role}\b.*{re.escape(words)}", self.way[-1]):
                return
        raise AssertionError(f"Tab does not come to {role} {words!r}:\n" + "\n".join(self.way[-most:]))

    def press(self, *keys: str) -> None:
        """Press each, and write down what has the focus then, where Tab or an arrow moved it."""
        for key in keys:
            self.page.keyboard.press(key)
            self.way.append(f"{key}: {self._focus()}" if key != "Enter" else key)

    def section(self, title: str) -> None:
        """Compare what was passed, what was said and what the page is now with what is written."""
        said: list[str] = []
        text, same, waited = "", 0, 0
        written = self.sections[self.at] if self.at < len(self.sections) else ""
        while waited < PATIENCE_MS:
            before = text
            said += self.page.evaluate("said.splice(0)")
            heard = [f"focus: {self._focus()}", *(f"said: {words}" for words in said)]
            text = "\n".join([f"# {title}", *self.way, *heard, self._tree()])
            same = same + LOOK_MS if text == before else 0
            if self.writes and same >= RESTS_MS:
                self.sections.append(text)
                break
            if not self.writes and self._same(text, written):
                break
            self.page.wait_for_timeout(LOOK_MS)
            waited += LOOK_MS
        else:
            lines = unified_diff(written.splitlines(), text.splitlines(), "written", "heard", lineterm="", n=1)
            raise AssertionError(f"{self.file.name}, {title}:\n" + "\n".join(lines))
        self.way = []
        self.at += 1

    def close(self) -> None:
        """The end of the file."""
        if self.writes:
            self.file.write_text("\n\n".join(_short(self.sections)) + "\n", encoding="utf-8")
        assert self.at == len(self.sections)

    def _same(self, text: str, written: str) -> bool:
        """Whether the words are the same, and the numbers nearly."""
        if _LEVEL.findall(text) != _LEVEL.findall(written):
            return False
        one, other = (_BEGINS.sub(_begin, words).replace("- '", "- ") for words in (text, written))
        if self.live:
            one, other = (_CROSS.sub("", words) for words in (one, other))
        if _NUMBER.split(one) != _NUMBER.split(other):
            return False
        pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
        return self.live or all(math.isclose(_value(a), _value(b), rel_tol=CLOSE) for a, b in pairs)

    def _focus(self) -> str:
        focus = self.page.locator("*:focus").last
        if focus.count() == 0:
            return "nothing"
        line = focus.aria_snapshot().split("\n")[0].removeprefix("- ").strip("'").rstrip(":")
        value = focus.evaluate("(node) => node.getAttribute('aria-valuetext')")
        return f"{line.rsplit(': ', 1)[0]}: {value}" if value else line

    def _tree(self) -> str:
        dialogs, main = self.page.get_by_role("dialog"), self.page.get_by_role("main")
        place = dialogs.last if dialogs.count() else main
        values: list[Any] = place.evaluate(_VALUES)
        tree = _SLIDER.sub(lambda found: f"{found[1]}: {values.pop(0) if values else ''}", place.aria_snapshot())
        tree = _NOTHING.sub("", _ADDRESS.sub("", tree) + "\n").strip("\n")
        for words, level in place.locator("[aria-level]").evaluate_all(_LEVELS):  # Playwright looks at the tag alone
            tree = re.sub(rf"(heading {re.escape(words)}) \[level=\d\]", rf"\1 [level={level}]", tree)
        return _SAVES.sub(r"\1", _BARE.sub(r"\1\2", _TWICE.sub(r"\1", tree)))


def _begin(line: re.Match[str]) -> str:
    """A sentence as far as it is compared: how it begins, with its numbers left out."""
    return f"{line[1]} {_NUMBER.sub('#', line[2])[:16]}".rstrip('"')


def _value(number: str) -> float:
    mantissa, _, power = number.replace("\u202f", "").partition("·10")
    if mantissa.count(".") > 1:
        return 0.0  # a version
    return float(mantissa) * 10.0 ** int(power.translate(_RAISED) or 0)


def _parted(section: str) -> tuple[list[str], list[str]]:
    """What was heard on the way, and the tree."""
    lines = section.split("\n")
    at = next(at for at, line in enumerate(lines) if line.startswith(("- ", "… ")))
    return lines[:at], lines[at:]


def _short(sections: list[str]) -> list[str]:
    """The sections with references to what stands in the one before."""
    short, before = [], list[str]()
    for section in sections:
        way, tree = _parted(section)
        lines = list[str]()
        for kind, a, b, c, d in SequenceMatcher(None, before, tree, autojunk=False).get_opcodes():
            lines += [f"… {a + 1}–{b} as before"] if kind == "equal" and b - a >= LEAST else tree[c:d]
        short.append("\n".join(way + lines))
        before = tree
    return short


def _whole(sections: list[str]) -> list[str]:
    """The sections with what their references stand for."""
    whole, before = [], list[str]()
    for section in sections:
        way, lines = _parted(section)
        tree = list[str]()
        for line in lines:
            found = _BEFORE.fullmatch(line)
            tree += before[int(found[1]) - 1 : int(found[2])] if found else [line]
        whole.append("\n".join(way + tree))
        before = tree
    return whole
