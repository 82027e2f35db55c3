"""Numbers and plurals of other languages: as CLDR has them, from the number as it is written."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkdemo.locale.cldr import categories, in_english, locale_of, localised, marks_of, place, sample
from qkdemo.messages import LANGUAGES, PSEUDO
from qkdemo.notation import counted, power, read, signs, spelled, written
from tests.javascript import node
from tests.locale import speaking

ROOT = Path(__file__).parents[2]
NUMBERS_JS = ROOT / "qkdemo" / "web" / "exhibit" / "heard" / "numbers.js"
SPOKEN = ["de", "fr", "pl", "hi", "sv", PSEUDO]  # a comma; thin spaces; no-break spaces; 12,34,567; …


# ---- which form


@pytest.mark.parametrize(
    ("spoken", "order"),
    [
        ("en", "one other"),
        (PSEUDO, "one other"),
        ("de", "one other"),
        ("fr", "one many other"),
        ("pl", "one few many other"),
        ("ar", "zero one two few many other"),
        ("ja", "other"),
        ("tlh", "one other"),
    ],
)
def test_the_categories_stand_in_the_order_of_cldr(spoken: str, order: str) -> None:
    assert " ".join(categories(spoken)) == order


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("1", "one"),
        ("2", "few"),
        ("5", "many"),
        ("22", "few"),
        ("12", "many"),
        ("1,5", "other"),
        ("0", "many"),
        ("21", "many"),
        ("1,0", "other"),
        ("−1", "one"),
        ("−22", "few"),
        ("1\u00a0024", "few"),
        ("1\u00a0000", "many"),
        ("1·10⁷", "many"),
        ("1,362·10⁻³", "other"),
        ("∞", "other"),
        ("−∞", "other"),
        ("NaN", "other"),
        ("none", "other"),
        ("3–5", "many"),
        ("1–2", "few"),
        ("1–1,5", "other"),
        ("× 2", "few"),
        ("< 1", "one"),
    ],
)
def test_the_number_as_it_is_written_says_which_form(text: str, category: str) -> None:
    assert categories("pl")[place(text, "pl")] == category


@pytest.mark.parametrize(
    ("spoken", "text", "category"),
    [
        ("de", "1", "one"),
        ("de", "1,0", "other"),
        ("de", "1.001", "other"),  # a thousand and one
        ("fr", "0", "one"),
        ("fr", "1,5", "one"),
        ("fr", "2", "other"),
        ("fr", "1\u202f000\u202f000", "many"),
        ("cs", "1,5", "many"),
        ("ja", "1", "other"),
    ],
)
def test_other_languages_have_other_rules(spoken: str, text: str, category: str) -> None:
    assert categories(spoken)[place(text, spoken)] == category


@pytest.mark.parametrize(("text", "at"), [("1", 0), ("2", 1), ("0", 1), ("1.0", 1), ("1\u202f001", 1), ("−1", 1)])
def test_english_says_one_of_one_alone(text: str, at: int) -> None:
    assert place(text, "en") == place(text, PSEUDO) == at


@pytest.mark.parametrize("spoken", ["en", "de", "fr", "pl", "cs", "ar", "ja"])
def test_a_sample_is_of_its_category(spoken: str) -> None:
    for at, category in enumerate(categories(spoken)):
        assert place(sample(category, spoken), spoken) == at


# ---- how a number is written


@pytest.mark.parametrize(
    ("spoken", "texts"),
    [
        ("en", ["3.302", "−64\u202f900", "1.362·10⁻³", "1\u202f048\u202f576", "∞", "10⁻¹²", "−0.125"]),
        ("de", ["3,302", "−64.900", "1,362·10⁻³", "1.048.576", "∞", "10⁻¹²", "−0,125"]),
        ("fr", ["3,302", "−64\u202f900", "1,362·10⁻³", "1\u202f048\u202f576", "∞", "10⁻¹²", "−0,125"]),
        ("pl", ["3,302", "−64\u00a0900", "1,362·10⁻³", "1\u00a0048\u00a0576", "∞", "10⁻¹²", "−0,125"]),
        ("hi", ["3.302", "−64,900", "1.362·10⁻³", "10,48,576", "∞", "10⁻¹²", "−0.125"]),
        (PSEUDO, ["3,302", "−64’900", "1,362·10⁻³", "1’048’576", "∞", "10⁻¹²", "−0,125"]),
    ],
)
def test_a_number_has_the_signs_of_its_language(spoken: str, texts: list[str]) -> None:
    with speaking(spoken):
        assert [
            written(3.3024),
            written(-64900.0),
            written(0.0013616),
            counted(1048576),
            written(math.inf),
            power(1e-12),
            spelled("-0.125"),
        ] == texts


@given(st.floats(allow_nan=False), st.sampled_from(SPOKEN))
def test_what_is_written_reads_back_in_its_language(x: float, spoken: str) -> None:
    in_words = read(written(x))
    with speaking(spoken):
        assert read(written(x)) == in_words


@given(st.integers(-(10**15), 10**15), st.sampled_from(SPOKEN))
def test_english_signs_come_back(n: int, spoken: str) -> None:
    text = counted(n)
    assert in_english(localised(text, spoken), spoken).replace("\u202f", "") == text.replace("\u202f", "")


def test_the_browser_writes_numbers_as_the_page_does() -> None:
    numbers = [sign * digits * 10.0**at for sign in (1, -1) for digits in (1, 1.23456) for at in range(-5, 10)]
    told: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for spoken in SPOKEN:
        with speaking(spoken):
            told[spoken] = signs()  # type: ignore[assignment]
            wanted[spoken] = [written(x) for x in numbers]
    program = (
        f"import {{ written }} from {NUMBERS_JS.as_uri()!r}; const signs = {json.dumps(told)};"
        f"const all = (spoken) => {json.dumps(numbers)}.map((x) => written(x, 4, signs[spoken]));"
        "console.log(JSON.stringify(Object.fromEntries(Object.keys(signs).map((spoken) => [spoken, all(spoken)]))));"
    )
    done = subprocess.run(
        [node(), "--input-type=module", "--eval", program], capture_output=True, encoding="utf-8", check=True
    )
    assert json.loads(done.stdout) == wanted


def test_english_sends_the_browser_no_signs() -> None:
    assert signs() == {}


def test_a_name_that_is_no_language_has_the_signs_of_english() -> None:
    assert locale_of("tlh") is None
    assert marks_of("tlh") == marks_of("en")


# ---- when Babel is loaded


def loads(*modules: str) -> list[str]:
    """Which of Babel's modules are there after these were imported, and a sentence and a number were written."""
    program = (
        f"import sys, {', '.join(modules)}; from qkdemo.messages import say; from qkdemo.notation import written;"
        "say('list.and', head=written(1.5), last='b'); say('note.more', count=2);"
        "print([name for name in sys.modules if name.split('.')[0] == 'babel'])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.replace("'", '"'))
    return found


def test_english_does_without_babel() -> None:
    assert loads("qkdemo.labs.registry", "qkdemo.cli.command", "qkdemo.web.pages") == []
    assert "babel.messages.pofile" in loads("qkdemo.locale.catalogue")


def test_where_babel_is_not_installed_another_language_is_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel", None)
    assert locale_of.__wrapped__("de") is None
    assert "de" not in LANGUAGES
