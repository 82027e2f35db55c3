"""Sentences that repeat what a link holds, shown so that it stays what it is: text.

* `as_text(sentence)`: Markdown that shows the sentence; what was given stands in it as code, never as Markdown.

A sentence repeats a visitor's text in quotes (`qkdemo.dials`). Code spans are the one place in Markdown where
nothing is a link, an address, an image or a formula. Numbers, and words of ours, are escaped. Quotes behind `=` are
those of an argument in Python, and stay: whoever copies the line can run it.
"""

import re
from typing import Final

_GIVEN: Final = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")  # as `repr` writes a text
_MARKDOWN: Final = "\\`*_{}[]()#+-.!|<>~$:&"


def as_text(sentence: str) -> str:
    """The sentence as it is.

    >>> as_text("scale must be a number, but is '[here](http://evil.example)'.")
    'scale must be a number, but is `[here](http://evil.example)`\\\\.'
    >>> as_text('watch(model, to="a.jsonl")')
    'watch\\\\(model, to=`"a.jsonl"`\\\\)'
    """
    shown, at = "", 0
    for found in _GIVEN.finditer(sentence):
        before = sentence[at : found.start()]
        shown += _escaped(before) + code(found[0] if before.endswith("=") else found[1] or found[2] or "")
        at = found.end()
    return shown + _escaped(sentence[at:])


def code(text: str) -> str:
    """A code span that shows `text`, whatever stands in it.

    >>> code("a"), code("`"), code("")
    ('`a`', '`` ` ``', '`` ``')
    """
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}" if text.strip() else "`` ``"


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in _MARKDOWN else c for c in text)
