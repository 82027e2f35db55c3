"""Every page, over the whole range of every dial, and under any link."""

import re
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qkdemo.dials import Choice, Declaration, Dial, Sentence, Switch, Value, declarations
from qkdemo.labs.registry import LABS
from qkdemo.messages import say
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.web.address.given import as_text
from qkdemo.web.pages import PAGES
from tests.strategies import SMALL, settings_of
from tests.web.visit import complaints, link_of, visit, widget_of

EVERY_DIAL = [
    pytest.param(page, dial, id=f"{page}-{dial.name}")
    for page, lab in LABS.items()
    for dial in declarations(lab.settings)
]


def both_ends(dial: Declaration) -> list[Value]:
    match dial.kind:
        case Switch():
            return [True, False]
        case Choice():
            return list(dial.allowed_words())
        case Sentence(known=known, most=most):
            return [known[0], " ".join(known[-1:] * most)]
        case Dial(low=low, high=high):
            return [int(x) if dial.whole else float(x) for x in (low, high)]


def state_in_which_it_acts(page: str, dial: Declaration) -> dict[str, str]:
    """A small state, so that every dial of every page can be turned; the others are not drawn, which is quicker."""
    dials = {other.name: other for other in declarations(LABS[page].settings)}
    small = {name: dials[name].write(dials[name].nearest(str(size))) for name, size in SMALL.items() if name in dials}
    small.pop(dial.name, None)
    small["hide"] = ",".join(name for name in dials if name != dial.name)
    if dial.kind.only_for is None:
        return small
    other, words = dial.kind.only_for
    return small | {other: str(words[0])}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_a_word_of_complaint(page: str) -> None:
    app = visit(page)
    assert not app.exception
    assert not complaints(app)


@pytest.mark.parametrize("page", [page for page in LABS if page != "arrows"])  # its exhibit asks
def test_a_labs_page_opens_with_its_question_but_a_tracks_stop_asks_its_own(page: str) -> None:
    asked = f"**{say(f'question.{page}')}** {say(f'instruction.{page}')}"
    assert visit(page).main.markdown[0].value == asked
    stop = next((stop for stop in TRACKS["developer"] if stop.lab.name == page), None)
    if stop is not None:
        app = visit(page, {"track": "developer", "stop": stop.name})
        assert all(asked not in element.value for element in app.main.markdown)


@pytest.mark.parametrize(("page", "dial"), EVERY_DIAL)
def test_a_dial_turns_to_both_ends_and_the_link_follows(page: str, dial: Declaration) -> None:
    app = visit(page, state_in_which_it_acts(page, dial))
    for value in both_ends(dial):
        widget_of(app, page, dial).set_value(value)
        app.run()
        assert not app.exception
        assert link_of(app).get(dial.name, dial.write(dial.default)) == dial.write(value)


@pytest.mark.parametrize("page", LABS)
def test_all_dials_at_an_end_together(page: str) -> None:
    for end in (0, -1):
        link = {dial.name: dial.write(both_ends(dial)[end]) for dial in declarations(LABS[page].settings)}
        app = visit(page, link)
        assert not app.exception
        assert not complaints(app)


@pytest.mark.parametrize("page", LABS)
def test_a_link_restores_any_state_to_the_last_dial(page: str) -> None:
    sized = [dial for dial in declarations(LABS[page].settings) if dial.name in ("n_keys", "d_head")]
    sizes = {dial.name: dial.nearest("16") for dial in sized}

    @settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
    @given(settings_of(LABS[page].settings, **sizes))
    def restores(state) -> None:
        app = visit(page, state.to_texts(defaults=True))
        assert not app.exception
        assert not complaints(app)
        assert link_of(app) == state.to_texts()

    restores()


HOSTILE = st.one_of(
    st.sampled_from(
        ["nan", "inf", "-1", "1e999", "0", "", "<script>", "64&d_head=128", "99999999", "٣", "None", "[](x)"]
    ),
    st.text(max_size=20),
    st.floats().map(str),
)


@pytest.mark.parametrize("page", LABS)
def test_no_link_breaks_a_page_and_every_correction_is_said(page: str) -> None:
    names = [dial.name for dial in declarations(LABS[page].settings)]

    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    @given(st.dictionaries(st.sampled_from([*names, "hide", "preset", "kale"]), HOSTILE, max_size=6))
    def survives(link: dict[str, str]) -> None:
        app = visit(page, link)
        assert not app.exception
        corrected = link_of(app)
        again = visit(page, corrected)
        assert not complaints(again)
        mended = any(
            name in names and corrected.get(name) != text for name, text in link.items() if text in ("nan", "<script>")
        )
        assert not mended or complaints(app)

    survives()


@pytest.mark.parametrize("page", LABS)
def test_every_preset_opens_from_the_menu_and_from_a_link(page: str) -> None:
    lab = LABS[page]
    for name, preset in lab.presets.items():
        app = visit(page, {"preset": name})
        assert not app.exception
        assert not complaints(app)
        assert link_of(app) == preset.to_texts()


@pytest.mark.parametrize("page", LABS)
def test_hidden_dials_are_not_drawn_but_keep_their_value(page: str) -> None:
    dials = declarations(LABS[page].settings)
    first = next(dial for dial in dials if not dial.kind.only_for)
    value = next(first.write(end) for end in both_ends(first) if end != first.default)
    app = visit(page, {first.name: value, "hide": first.name})
    assert link_of(app) == {first.name: value, "hide": first.name}
    with pytest.raises(KeyError):
        widget_of(app, page, first)


def test_a_long_wrong_link_gets_one_message() -> None:
    app = visit("drift", {f"{letter}{i}": "1" for letter in string.ascii_lowercase for i in range(9)})
    assert len(app.warning) == 1
    assert len(complaints(app)[0].splitlines()) < 15


GIVEN = [
    "http://evil.example/login",
    "www.evil.example",
    "a@evil.example",
    "[here](http://evil)",
    "<img src=x>",
    "`http://evil.example`",
    "``",
    "'http://evil.example'",
    "'\"http://evil.example",
    "$x$ :red[a] :material/bolt:",
    "\\` http://evil.example",
]


@pytest.mark.parametrize("page", LABS)
def test_what_a_stranger_wrote_into_a_link_is_shown_as_code(page: str) -> None:
    dials = declarations(LABS[page].settings)
    for text in GIVEN[:2]:
        (warning,) = visit(page, {dials[0].name: text, dials[-1].name: text, text: "1"}).warning
        assert warning.value.count(f"`{text}`") == 3
        assert not re.search("http|www|evil", outside_code(warning.value))


@pytest.mark.parametrize("text", GIVEN)
def test_no_text_of_a_link_gets_out_of_its_code(text: str) -> None:
    for known in (f"variant is {text!r}, which is not known here.", f"The link names {text!r}, which is no dial."):
        left = outside_code(as_text(known))
        assert not re.search(r"(?<!\\)[`<\[$:@]|http|www|evil", left), left


def outside_code(markdown: str) -> str:
    """What CommonMark takes for no code span: a span ends at a run of as many backticks as began it."""
    return re.sub(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", markdown)
