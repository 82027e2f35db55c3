"""A track on paper: complete, self-contained, readable by all, and honest about what was predicted."""

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qkdemo.charts.look import cell, row_of
from qkdemo.facts.models import MODELS
from qkdemo.facts.references import REFERENCES
from qkdemo.facts.softcap import READINGS
from qkdemo.labs import training as twins
from qkdemo.messages import LANGUAGES
from qkdemo.runs.kept.store import Store
from qkdemo.runs.workers.job import Hand, Job, train
from qkdemo.tracks.catalogue import TRACKS, is_trained, text
from qkdemo.tracks.progress import Progress, Said, read_progress
from qkdemo.tracks.prose import without_targets
from qkdemo.tracks.stop import Choose, Estimate, Evidence, Stop
from qkdemo.tracks.stop import Read as ReadOff
from qkdemo.web.handout.page import handout, main
from qkdemo.web.track import evidence

BASE = "http://192.168.1.20:8501"
VOID = {"meta", "br", "hr", "img", "link", "input"}
FULL = [track for track, stops in TRACKS.items() if stops]


class Read(HTMLParser):
    """What a file holds. Raises AssertionError where an element is not closed, or closed by another."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.said += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(autouse=True)
def no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    monkeypatch.setenv("QKDEMO_STORE", url)
    evidence._store.cache_clear()
    return url


def nothing_said(track: str) -> Progress:
    return read_progress("", TRACKS[track])


def plain(sentence: str) -> str:
    """A sentence as the file shows it."""
    return re.sub(r"`|\*\*", "", without_targets(sentence)).replace(" %", "\u00a0%")


@pytest.mark.parametrize("answers", ["below", "end"])
@pytest.mark.parametrize("track", FULL)
def test_every_stop_is_there_with_every_sentence_and_number(track: str, answers: Any) -> None:
    page = Read(handout(track, nothing_said(track), BASE, answers))
    assert [section["id"] for section in page.all("section") if "id" in section] == [
        f"stop-{at}" for at in range(1, len(TRACKS[track]) + 1)
    ]
    for stop in TRACKS[track]:
        found = evidence.evidence_now(stop)
        numbers = found.numbers if found is not None else {}
        choices = [f"choice.{word}" for word in stop.ask.words] if isinstance(stop.ask, Choose) else []
        for part in ("title", "question", *choices, *(["explain"] if found is not None else [])):
            assert plain(text(track, stop, part, numbers)) in page.said, (stop.name, part)
        shown = stop.lab.exhibit is not None and not is_trained(stop)
        assert f"{BASE}/" in page.said
        assert not shown or page.all("figure")
    assert "PyTorch 2." in page.said
    assert f"NumPy {np.__version__}" in page.said


@pytest.mark.parametrize("answers", ["below", "end"])
@pytest.mark.parametrize("track", FULL)
def test_the_file_needs_nothing_but_itself(track: str, answers: Any) -> None:
    html = handout(track, nothing_said(track), BASE, answers)
    page = Read(html)
    for tag in ("script", "link", "img", "iframe", "object", "embed", "form"):
        assert not page.all(tag)
    assert not re.search(r"url\(|@import|javascript:|\son\w+=", html)
    addressed = {attributes[name] for _, attributes in page.tags for name in ("src", "href") if name in attributes}
    sources = {one.link for one in (*REFERENCES.values(), *MODELS, *READINGS)}  # where a reader may look further
    assert all(address is not None and address.startswith(f"{BASE}/") for address in addressed - sources)
    assert len(page.all("a")) >= len(TRACKS[track])


@pytest.mark.parametrize("track", FULL)
def test_what_is_drawn_is_said_and_headings_are_in_order(track: str) -> None:
    page = Read(handout(track, nothing_said(track), BASE))
    for svg in page.all("svg"):
        assert svg["role"] == "img"
        assert svg["aria-label"]
    assert page.all("html")[0]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - former <= 1 for former, later in itertools.pairwise(levels))


def test_answers_at_the_end_are_not_given_away_before() -> None:
    for track in FULL:
        html = handout(track, nothing_said(track), BASE, "end")
        questions, answers = html.split("<section class='answers'>")
        assert "class='answer'" not in questions
        assert answers.count("class='answer'") == len(TRACKS[track])
        for stop in TRACKS[track]:
            sheet = questions.split(f"?track={track}&amp;stop={stop.name}'")[0].rsplit("<section", 1)[1]
            if stop.start is None:
                assert "<figure>" not in sheet
            elif (exhibit := evidence.drawn(stop, stop.start)) is not None:
                table, view = exhibit
                dial = view["dial"]
                at = cell(table, dial["text"], row_of(table, view, dial["at"]))
                assert f"{dial['label']} {at}. " in sheet  # as the page starts, not as it ends
                veiled = dial.get("name", dial["column"]) in stop.turned
                assert (">?</text>" in sheet) == (veiled and "class='panel curves'" in sheet)


def test_what_the_visitor_predicted_is_written_down_and_judged() -> None:
    stops = TRACKS["beginner"]
    progress: list[Said] = []
    right = wrong = 0
    for at, stop in enumerate(stops):
        found = evidence.evidence_now(stop)
        if found is None or at == len(stops) - 1:
            progress.append(Said())
            continue
        if isinstance(stop.ask, Choose) and at % 2:
            progress.append(Said(next(word for word in stop.ask.words if word != found.answer), shown=True))
            wrong += 1
        else:
            progress.append(Said(found.answer, shown=True))
            right += 1
    page = Read(handout("beginner", tuple(progress), BASE))
    said = LANGUAGES["en"]
    assert page.said.count(said["handout.predicted"]) == right
    assert page.said.count(said["handout.not_predicted"]) == wrong
    assert sum("blank" in (p.get("class") or "") for p in page.all("p")) == len(stops) - right - wrong
    if any(isinstance(stop.ask, Estimate) and not is_trained(stop) for stop in stops[:-1]):
        assert "you: " in page.said  # drawn into the chart


def test_an_address_cannot_break_out_of_its_place() -> None:
    page = Read(handout("beginner", nothing_said("beginner"), "http://x/'><script>alert(1)</script>"))
    assert not page.all("script")


# ---- a stop whose run has to be trained


READS = {"largest": ReadOff(column="plain.max_abs_logit", of="largest")}
SMALL = twins.Settings(n_layers=1, n_heads=1, d_head=8, n_keys=8, batch=2, steps=60)


def _evidence(found: twins.Result) -> Evidence:
    return Evidence("yes", {"steps": str(len(found.curves))})


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Stop:
    ask = Choose(("yes", "no"))
    stop = Stop(name="small", lab=twins.LAB, state=SMALL, ask=ask, evidence=_evidence, points=(), reads=READS)
    monkeypatch.setitem(TRACKS, "beginner", (stop,))  # type: ignore[index]
    sentences = {
        "title": "T",
        "question": "Q?",
        "choice.yes": "Yes",
        "choice.no": "No",
        "explain": "After {steps} steps.",
    }
    for part, sentence in sentences.items():
        monkeypatch.setitem(LANGUAGES["en"], f"stop.beginner.small.{part}", sentence)
    monkeypatch.setattr(evidence, "pool", lambda: None)
    return stop


def test_a_run_that_nobody_trained_is_said_to_be_missing(trained: Stop) -> None:
    page = Read(handout("beginner", (Said(),), BASE))
    assert LANGUAGES["en"]["handout.not_trained"] in page.said
    assert not page.all("svg")
    assert f"{BASE}/training?track=beginner&stop=small" in page.said


def test_a_recorded_run_is_drawn(trained: Stop, no_runs: str) -> None:
    store = Store(no_runs)
    plan = twins.plan_of(SMALL)
    store.begin(plan)
    train(Job(plan, plan.steps, 0), store, Hand(), lambda *_: None)
    page = Read(handout("beginner", (Said("no", shown=True),), BASE))
    assert "After 60 steps." in page.said
    assert LANGUAGES["en"]["training.panel.max_abs_logit"] in page.said
    (svg,) = page.all("svg")
    assert "60: " in (svg["aria-label"] or "")


def test_a_store_that_cannot_be_read_is_as_good_as_empty(trained: Stop, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/file/runs.sqlite")
    assert LANGUAGES["en"]["handout.not_trained"] in Read(handout("beginner", (Said(),), BASE)).said


# ---- from a shell


def test_the_command_writes_the_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRACKS, "beginner", TRACKS["beginner"][:3])  # type: ignore[index]  # none that trains
    first = TRACKS["beginner"][0]
    assert isinstance(first.ask, Choose)
    assert main(["beginner", "--url", BASE, "--answers", "end", "--said", f"{first.ask.words[0]}!"]) == 0
    written = capsys.readouterr().out
    assert written == handout("beginner", read_progress(f"{first.ask.words[0]}!", TRACKS["beginner"]), BASE, "end")
    with pytest.raises(SystemExit):
        main(["kale"])


Capture = pytest.CaptureFixture[str]


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what one test trains is not there for the next."""
    monkeypatch.setattr(evidence, "_TRAINED_HERE", {})


@pytest.mark.parametrize("store", ["empty", "unreadable"])
def test_a_shell_trains_the_run_that_nobody_trained_and_says_so(
    trained: Stop, forgetful: None, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    if store == "unreadable":
        (tmp_path / "file").write_text("no folder", encoding="utf-8")
        monkeypatch.setenv("QKDEMO_STORE", f"sqlite:///{tmp_path}/file/runs.sqlite")
    assert main(["beginner", "--answers", "end"]) == 0
    captured = capsys.readouterr()
    page = Read(captured.out)
    assert "After 60 steps." in page.said
    assert len(page.all("svg")) == 1
    assert LANGUAGES["en"]["handout.not_trained"] not in page.said
    assert captured.err.startswith("“T” is answered by a training run that is not recorded: training it now.\n")


def test_what_a_shell_trains_is_what_a_worker_records(trained: Stop, forgetful: None, no_runs: str) -> None:
    evidence.train_here(trained)
    plan = twins.plan_of(SMALL)
    here = evidence.finished(plan)
    store = Store(no_runs)
    store.begin(plan)
    train(Job(plan, plan.steps, 0), store, Hand(), lambda *_: None)
    kept = store.read(plan)
    assert here is not None
    assert kept is not None
    assert (here.curves == kept.chunk.curves).all()
    assert (here.maps == kept.chunk.maps).all()


def test_a_shell_that_cannot_train_writes_the_rest_and_warns(
    trained: Stop, forgetful: None, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("out of memory\nat 0x1")

    monkeypatch.setattr(evidence, "train_whole", full)
    assert main(["beginner"]) == 1
    captured = capsys.readouterr()
    assert LANGUAGES["en"]["handout.not_trained"] in Read(captured.out).said
    assert captured.err.splitlines()[-1] == "“T” cannot be trained (out of memory): the sheet lacks its answer."


def test_every_lab_with_an_exhibit_can_be_drawn() -> None:
    """A stop of another lab would have no figure: the table of models has none, and the sphere is turned on screens."""
    labs = {stop.lab.name: stop.lab for stops in TRACKS.values() for stop in stops}
    assert {name for name, lab in labs.items() if lab.exhibit is None} <= {"models", "sphere"}
