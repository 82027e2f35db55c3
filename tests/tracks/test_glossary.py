"""The glossary: whole, found where its words stand, and nothing used in a track before it is introduced."""

import json
import re
from xml.etree import ElementTree

import pytest

from qkdemo.messages import LANGUAGES
from qkdemo.tracks.catalogue import TRACKS
from qkdemo.tracks.glossary import TERMS, entry, marked, terms_in
from qkdemo.tracks.glossary_figures import FIGURES, figure
from qkdemo.tracks.prose import without_targets, words_of
from tests import readability
from tests.tracks.links import KEPT, links

# Term → the stop whose words introduce it. What a developer, and a researcher, is taken to know stands apart.
INTRODUCED = {
    "beginner": {
        **dict.fromkeys(
            ("attention", "query", "key", "score", "softmax", "attention_weight", "vector", "length"),
            "arms",
        ),
        "norm": "arms",  # “normalised attention”: what it does is said there, and the word for it at `fix`
        **dict.fromkeys(("weights", "logit", "weight_scale"), "growth"),
        "head": "root",
        "entropy": "winner",
        "slope": "stuck",
        "qk_norm": "fix",
        **dict.fromkeys(("format", "float16", "float32", "bfloat16"), "overflow"),
        "bound": "dial",
        **dict.fromkeys(("rate", "loss"), "live"),
        "layer": "confidence",
        "rounding": "winner",
    },
    "developer": {
        "weight_scale": "table",
        "l2": "table",
        "rms": "rms",
        "gain": "rms",
        "pre_norm": "place",
        "residual": "place",
        "cache": "again",
        "port": "place",
        "rotary": "place",
        "clipping": "log",
        "one_hot": "small_g",
    },
}
# Of the beginner's track: what the sentence says in which a word stands for the first time.
DEFINED = {
    "attention": "lets each word of a text look at other words",
    "vector": "every word makes two arrows",
    "query": "says what the word looks for",
    "key": "says what others can find in it",
    "score": "says how well a query and a key fit",
    "softmax": "turns the scores of one query into",
    "attention_weight": "add up to one hundred per cent",
    "weight_scale": "every arrow is",
    "length": "makes every arrow longer, and does not turn it",  # the title has it first
    "norm": "brings all arrows to one length",
    "weights": "training changes its numbers, the weights",
    "logit": "is a score, divided by a fixed number",
    "head": "Each is called",
    "entropy": "says how widely a query looks",
    "rounding": "after rounding",  # an everyday word
    "slope": "says how far they move",
    "qk_norm": "A norm on the queries and keys themselves, before the scores are formed",
    "format": "stores numbers in",
    "float16": "The largest number in the format",
    "float32": "in a wider format",
    "bfloat16": "Another short format",
    "bound": "Such a limit is called",
    "rate": "says how large a step of training is",
    "loss": "says how badly a model predicts",
    "layer": "A model is a stack of",
}
# And words that the glossary does not have, as a pattern: where they stand first their sentence says what they mean.
SIMPLE = {
    "plain attention": "All this is plain attention",
    "normalised attention": "first brings all arrows to one length",
    "models?": "is a program that learns",
    "training": "training changes its numbers",
    "weights?": "training changes its numbers, the weights",
    "wider|wide": "its arrows get more numbers",
    "formats?": "stores numbers in a number format",
    "normalised model|plain model": "The plain model",  # of `live`, whose question tells the two apart
    "frames?": "",  # never: nothing says which
}
EVERYDAY = {"beginner": {"value"}, "developer": {"value"}}
KNOWN = {
    "developer": {
        *("attention", "query", "key", "value", "weights", "token", "head", "channel", "layer", "vector", "length"),
        *("cosine", "score", "logit", "softmax", "attention_weight", "row", "mask", "entropy", "slope"),
        *("gradient", "loss", "rate", "adam", "nan", "norm", "qk_norm", "format", "float16", "bfloat16", "float32"),
        *("overflow", "rounding", "kernel", "checkpoint", "bound", "scale", "block", "seed", "variant"),
    }
}


def test_every_word_has_a_name_a_sentence_a_formula_and_a_picture() -> None:
    assert set(FIGURES) == set(TERMS)
    assert len(TERMS) > 60
    for term in TERMS:
        one = entry(term)
        assert one.name
        assert one.sentence.endswith((".", ")"))
        assert one.formula
        assert readability.grade(one.sentence) < 14, one


@pytest.mark.parametrize("term", TERMS)
def test_a_picture_is_an_image_that_stays_within_its_frame(term: str) -> None:
    drawn = ElementTree.fromstring(figure(term))
    assert drawn.tag.endswith("svg")
    assert len(drawn) > 0
    for shape in drawn.iter():
        if shape.tag.endswith("rect"):
            right = float(shape.attrib["x"]) + float(shape.attrib["width"])
            assert 0 <= float(shape.attrib["x"]) <= right <= 160.5
        if shape.tag.endswith("polyline"):
            points = [tuple(map(float, point.split(","))) for point in shape.attrib["points"].split()]
            assert all(-2 <= x <= 162 and -12 <= y <= 90 for x, y in points), points


def lines_of(term: str) -> list[list[tuple[float, float]]]:
    """The lines of a picture, each as points (x, y) with y upwards."""
    drawn = ElementTree.fromstring(figure(term)).iter()
    lines = [shape.attrib["points"].split() for shape in drawn if shape.tag.endswith("polyline")]
    return [[(float(x), -float(y)) for x, y in (point.split(",") for point in line)] for line in lines]


def test_the_picture_of_a_cosine_is_zero_at_a_right_angle_and_below_it_beyond() -> None:
    _, curve, zero = lines_of("cosine")
    level = zero[0][1]
    at_right_angle = curve[len(curve) // 2][1]
    assert at_right_angle == pytest.approx(level, abs=0.2)
    assert curve[0][1] > level > curve[-1][1]


def test_the_picture_of_a_softcap_lies_below_what_it_caps() -> None:
    _, capped, ((x0, y0), (x1, y1)) = lines_of("softcap")
    uncapped = [y0 + (y1 - y0) * (x - x0) / (x1 - x0) for x, _ in capped]
    assert all(y <= straight + 0.2 for (_, y), straight in zip(capped, uncapped, strict=True))


def test_the_picture_of_a_jacobian_is_one_of_a_softmax() -> None:
    """The rows of p_j (δ_jk − p_k) add up to zero, and it is symmetric: so are the sizes that are drawn as darkness."""
    cells = [shape for shape in ElementTree.fromstring(figure("jacobian")) if shape.tag.endswith("rect")]
    sizes = [(float(cell.attrib["fill-opacity"]) - 0.08) / 0.92 for cell in cells]
    rows = [sizes[at : at + 3] for at in (0, 3, 6)]
    assert max(sizes) == pytest.approx(1, abs=0.01)
    for at, row in enumerate(rows):
        assert row[at] == pytest.approx(sum(row) - row[at], abs=0.03)
        assert row == pytest.approx([other[at] for other in rows], abs=0.03)


def test_words_in_a_chain_fit_their_boxes() -> None:
    for term in TERMS:
        shapes = list(ElementTree.fromstring(figure(term)))
        boxes = [float(shape.attrib["width"]) for shape in shapes if shape.attrib.get("rx")]
        words = [shape for shape in shapes if shape.tag.endswith("text")]
        for width, word in zip(boxes, words, strict=True):
            assert len(word.text or "") * 0.6 * float(word.attrib["font-size"]) <= width, (term, word.text)


def test_no_form_leads_to_two_words() -> None:
    forms = [form for term in TERMS for form in LANGUAGES["en"][f"glossary.{term}.forms"].lower().split(", ")]
    assert len(forms) == len(set(forms))


def test_the_first_mention_of_a_word_leads_to_it_and_the_longest_form_wins() -> None:
    text = marked("The attention weight of a key. Another key; `key`; [a key](key=3). QK norm is a norm.")
    assert text == (
        "The [attention weight](?attention_weight) of a [key](?key). Another key; `key`; [a key](key=3). "
        "[QK norm](?qk_norm) is a [norm](?norm)."
    )
    assert marked(marked("entropy")) == "[entropy](?entropy)"
    assert marked("keyboard, {key} and monkeys") == "keyboard, {key} and monkeys"


@pytest.mark.parametrize("track", ["beginner", "developer"])
def test_nothing_is_used_before_it_is_introduced(track: str) -> None:
    introduced, free = INTRODUCED[track], EVERYDAY[track] | KNOWN.get(track, set())
    order = [stop.name for stop in TRACKS[track]]
    for at, name in enumerate(order):
        for term in terms_in(words_of_stop(track, name)):
            if term in free:
                continue
            assert term in introduced, f"{name} uses {term}, which the track does not introduce"
            assert order.index(introduced[term]) <= at, f"{name} uses {term} before {introduced[term]}"


def test_every_word_of_the_beginners_track_is_defined_where_it_stands_first() -> None:
    first: dict[str, str] = {}
    for stop in TRACKS["beginner"]:
        for part in ("question", "explain"):
            for sentence in readability.sentences_of(text_of("beginner", stop.name, part)):
                for term in terms_in(sentence):
                    first.setdefault(term, sentence)
    assert {term: words in first[term] for term, words in DEFINED.items() if term != "length"} == dict.fromkeys(
        DEFINED.keys() - {"length"}, True
    ), first
    assert set(first) - EVERYDAY["beginner"] == set(DEFINED)


def test_the_beginners_quiz_uses_only_words_of_the_first_stop_and_of_its_subject() -> None:
    """They stand before the track: logits, entropy and heads are called there what the first stop calls them."""
    named = {"qk_norm", "norm", "weights", "format", "float16", "overflow"}
    first = {term for term, stop in INTRODUCED["beginner"].items() if stop == TRACKS["beginner"][0].name}
    for key, text in LANGUAGES["en"].items():
        if key.startswith("quiz.beginner."):
            later = set(terms_in(re.sub(r"\{[^}]*\}", "", text))) - first - named
            assert not later, f"{key} uses {later}"


@pytest.mark.parametrize(("words", "said"), SIMPLE.items())
def test_a_simple_word_of_the_beginners_track_is_said_where_it_stands_first(words: str, said: str) -> None:
    form = re.compile(rf"\b({words})\b", re.IGNORECASE)
    read = [
        sentence
        for stop in TRACKS["beginner"]
        for sentence in readability.sentences_of(re.sub(r"\]\([^)]*\)", "", words_of_stop("beginner", stop.name)))
    ]
    first = next((sentence for sentence in read if form.search(sentence)), "")
    assert said in first.replace("[", "")
    assert bool(first) == bool(said), first


@pytest.mark.parametrize("track", ["beginner", "developer"])
def test_the_first_use_of_a_word_at_a_stop_is_a_link_to_it(track: str) -> None:
    for stop in TRACKS[track]:
        for part in ("question", "explain"):
            text = text_of(track, stop.name, part)
            free = re.sub(r"\[[^\]]*\]\([^)]*\)", "", text)  # a word that drives the chart is a link already
            for term in set(terms_in(free)) & set(terms_in(text)):
                assert f"(?{term})" in marked(text), (stop.name, part, term)


@pytest.mark.parametrize("track", ["beginner", "developer"])
def test_what_introduces_a_word_says_it(track: str) -> None:
    for term, name in INTRODUCED[track].items():
        assert term in terms_in(words_of_stop(track, name)), (term, name)


def test_what_leads_to_the_glossary_means_what_stands_there() -> None:
    """Look at each new one: `python -m tests.tracks.links` writes them anew. One that means another is `[rows](?)`."""
    assert links() == json.loads(KEPT.read_text(encoding="utf-8"))


def test_a_word_that_means_something_else_leads_nowhere() -> None:
    text = "The [rows](?) of a table, each row a norm."
    assert marked(text) == text.replace("norm", "[norm](?norm)")
    assert terms_in(text) == ["norm"]
    assert without_targets(text) == "The rows of a table, each row a norm."
    brackets = "[batch, [heads](?head)], positions"
    assert [word.text for word in words_of(brackets) if word.term] == ["heads"]
    assert without_targets(brackets) == "[batch, heads], positions"


def text_of(track: str, name: str, part: str) -> str:
    return LANGUAGES["en"][f"stop.{track}.{name}.{part}"]


def words_of_stop(track: str, name: str) -> str:
    """What is read at a stop, in its order."""
    prefix = f"stop.{track}.{name}."
    parts = {key.removeprefix(prefix): text for key, text in LANGUAGES["en"].items() if key.startswith(prefix)}
    first = [parts.pop(part) for part in ("title", "question")]
    text = " ".join([*first, *parts.values()])
    return re.sub(r"\{[^}]*\}", "", text)
