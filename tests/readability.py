"""How hard the sentences of the interface are to read: the school grade of Flesch and Kincaid (1975).

* `grade(text)`: 0.39 · words per sentence + 11.8 · syllables per word − 15.59;
* as a program, `python -m tests.readability [beginner developer …]`: every stop, every file of sentences, the hardest
  first; `--sentences` lists the hardest sentences.

A number, a formula or a name that a sentence
fills in is one word of one syllable: nobody reads them by syllables. Syllables are groups of vowels, less a silent e.
"""

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "qkdemo" / "locale" / "en"
TRACKS = ("beginner", "developer", "researcher", "claims")
LIMITS = {"beginner": 8.0, "developer": 11.0}
_LINK = re.compile(r"\[([^\]]*)\]\([^()]*\)")
_CODE = re.compile(r"`[^`]*`")
_ENDS = re.compile(r"(?<=[.?!])[”)]*\s+")
_LETTERS = re.compile(r"[^\W\d_]{2,}(?:[’'][^\W\d_]+)?")
_VOWELS = re.compile(r"[aeiouy]+")


def grade(text: str) -> float:
    """The grade of a text; 0 for one without a word.

    >>> round(grade("The cat sat on the mat."), 1)
    -1.4
    """
    sentences = list(sentences_of(text))
    words = [word for sentence in sentences for word in sentence.split()]
    if not words:
        return 0.0
    return 0.39 * len(words) / len(sentences) + 11.8 * sum(map(syllables, words)) / len(words) - 15.59


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text, without what drives a chart; a number that is filled in, and code, are a word each."""
    read = (
        re.sub(r"\{[^}]*\}", "x", _CODE.sub("x", _LINK.sub(r"\1", text))).replace("**", "").replace("et al.", "et al")
    )
    for sentence in _ENDS.split(read):
        if sentence.strip():
            yield sentence.strip()


def syllables(word: str) -> int:
    """Of a word as it is read: groups of vowels, less a silent e; 1 for a number or a formula.

    >>> [syllables(word) for word in ("attention", "scale", "largest", "√d", "twice", "length.")]
    [3, 1, 2, 1, 1, 1]
    """
    letters = _LETTERS.search(word.lower())
    if letters is None:
        return 1
    count = len(_VOWELS.findall(letters[0]))
    if re.search(r"(?<![aeiouytd])ed$|(?<![aeiouylsxzcg])es$|(?<!l)e$|(?<=[aeiouyl])le$", letters[0]):
        count -= 1  # silent, as in scaled, lines and weight scale; not as in needed, sizes and multiple
    return max(1, count)


def flat(branch: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every sentence of a table, by its key."""
    for name, value in branch.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value)


def texts() -> dict[str, dict[str, str]]:
    """File → key → sentence."""
    return {
        path.stem: dict(flat(tomllib.loads(path.read_text(encoding="utf-8")))) for path in sorted(FOLDER.glob("*.toml"))
    }


def stops(track: str) -> dict[str, str]:
    """Stop → its question, choices and explanation as one text."""
    found: dict[str, list[str]] = {}
    for key, sentence in texts()[track].items():
        _, _, name, part = key.split(".", 3)
        if part != "title" and not part.startswith("mark"):
            found.setdefault(name, []).append(sentence if sentence[-1] in ".?!" else f"{sentence}.")
    return {name: " ".join(parts) for name, parts in found.items()}


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("track", nargs="*", default=list(TRACKS))
    parser.add_argument("--sentences", type=int, default=0, metavar="N", help="also the N hardest sentences of each")
    given = parser.parse_args()
    for track in given.track:
        grades = {name: grade(text) for name, text in stops(track).items()}
        print(f"{track}: mean {sum(grades.values()) / len(grades):.1f}, limit {LIMITS.get(track, '–')}")
        for name, value in sorted(grades.items(), key=lambda entry: -entry[1]):
            print(f"  {value:5.1f}  {name}")
        every = {sentence for text in stops(track).values() for sentence in sentences_of(text)}
        for sentence in sorted(every, key=grade, reverse=True)[: given.sentences]:
            print(f"  {grade(sentence):5.1f}  {sentence}")
    for name, sentences in texts().items():
        if name not in TRACKS:
            whole = " ".join(text for text in sentences.values() if text.endswith((".", "?")))
            print(f"{grade(whole):5.1f}  {name}.toml")


if __name__ == "__main__":
    _main()
