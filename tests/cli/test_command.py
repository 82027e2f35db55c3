"""The labs from a shell: what it prints, what it refuses, and in which words."""

import itertools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qkdemo.cli.command import COMMANDS, _states, main
from qkdemo.dials import Dial, declarations
from qkdemo.labs.drift import PRESETS, Settings, report
from qkdemo.messages import LANGUAGES, has, say
from tests.strategies import COMPUTED

ROOT = Path(__file__).parents[2]
COLUMNS = [  # documented, in this order; others may follow
    *("scale", "variant", "max_abs_logit", "top_weight", "entropy", "entropy_fraction", "softmax_slope"),
    "bound",
]
Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *arguments: str) -> dict[str, Any]:
    """The JSON of a command that succeeds and warns of nothing, read strictly."""
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    read: dict[str, Any] = json.loads(captured.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return read


def refused(capsys: Capture, *arguments: str) -> str:
    """The one line on stderr with which a command is refused, with exit code 2 and nothing on stdout."""
    try:
        code: Any = main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    line, rest = captured.err.split("\n", 1)
    assert rest == ""
    return line


def shell(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "qkdemo", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


# --- what it prints -----------------------------------------------------------------------------------------------


def test_the_seed_table_comes_out_of_one_command(capsys: Capture) -> None:
    found = printed(capsys, "drift", "--scale", "1,2,4,8,16", "--variant", "l2", "--gain", "10")
    assert table(found, "none") == [
        ("2.6", "0.4111", "2.332", "5.39e-02"),
        ("10.6", "0.9957", "0.676", "2.14e-02"),
        ("42.3", "1.0000", "0.148", "5.48e-03"),
        ("169.2", "1.0000", "0.037", "1.36e-03"),
        ("676.9", "1.0000", "0.001", "1.74e-05"),
    ]
    assert table(found, "l2") == [("3.3", "0.5237", "2.127", "5.10e-02")] * 5
    assert [row["scale"] for row in found["rows"]] == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16]


def test_its_gains_too(capsys: Capture) -> None:
    found = printed(capsys, "drift", "--gain=1,5,20,50")
    assert [(top, entropy) for _, top, entropy, _ in table(found, "l2")] == [
        ("0.0844", "2.765"),
        ("0.2297", "2.592"),
        ("0.9252", "1.182"),
        ("0.9999", "0.469"),
    ]
    assert [(row["gain"], row["bound"]) for row in found["rows"] if row["variant"] == "l2"] == [
        (1, 1),
        (5, 5),
        (20, 20),
        (50, 50),
    ]


def table(found: dict[str, Any], variant: str) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"{row['max_abs_logit']:.1f}",
            f"{row['top_weight']:.4f}",
            f"{row['entropy']:.3f}",
            f"{row['softmax_slope']:.2e}",
        )
        for row in found["rows"]
        if row["variant"] == variant
    ]


def test_a_shell_in_any_encoding_prints_what_main_prints(capsys: Capture) -> None:
    """From a process of its own, into a pipe that knows ASCII alone."""
    command = ["models", "--family", "gemma"]
    done = shell(*command, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert main(command) == 0
    assert done.stdout == capsys.readouterr().out
    assert "√" in done.stdout


def test_a_shell_gets_the_exit_code_and_the_line() -> None:
    done = shell("drift", "--scale", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "qkdemo: scale must be between 0.01 and 1000, but is 0.\n"


@pytest.mark.parametrize("mask", ["-inf", "-1e4", "-1e9", "finfo.min"])
def test_a_negative_value_needs_no_equals_sign(capsys: Capture, mask: str) -> None:
    small = ("--causal", "--n-keys", "2", "--d-head", "4")
    assert printed(capsys, "formats", "--mask", mask, *small) == printed(capsys, "formats", f"--mask={mask}", *small)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    ("command", "target", "reason"),
    [
        ("drift", ">/dev/full", "No space left on device"),
        ("drift --json", ">&-", "Bad file descriptor"),
        ("--help", ">/dev/full", "No space left on device"),
    ],
)
def test_output_that_cannot_be_written_is_answered_in_one_line_and_with_code_one(
    command: str, target: str, reason: str
) -> None:
    line = f"{shlex.quote(sys.executable)} -m qkdemo {command} {target}"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (1, f"qkdemo: The output cannot be written: {reason}.\n")


def test_a_reader_who_leaves_early_is_no_error() -> None:
    line = f"{shlex.quote(sys.executable)} -m qkdemo models | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_json_has_the_documented_keys_and_settings_that_repeat_the_command(capsys: Capture) -> None:
    found = printed(capsys, "drift", "--scale", "2", "--causal", "--n-keys", "4", "--format", "float32")
    assert list(found) == ["lab", "settings", "made_with", "rows"]
    state = Settings(scale=2, causal=True, n_keys=4, format="float32")
    assert found["settings"] == state.as_dict()
    assert found["rows"] == report(state)["rows"]
    for row in found["rows"]:
        assert [name for name in row if name in COLUMNS] == COLUMNS
    assert [row["bound"] for row in found["rows"]] == [None, 10]


def test_numbers_are_printed_in_full(capsys: Capture) -> None:
    (row,) = report(Settings(variant="none"))["rows"]
    assert printed(capsys, "drift", "--variant", "none")["rows"][0]["softmax_slope"] == row["softmax_slope"]


def test_what_is_not_finite_is_a_word(capsys: Capture) -> None:
    row = printed(capsys, "drift", "--preset", "half_precision")["rows"][0]
    assert row["max_abs_logit"] == "inf"
    assert row["entropy"] == row["top_weight"] == row["softmax_slope"] == row["entropy_fraction"] == "nan"
    assert (row["undefined_rows"], row["raw_lost"]) == (16, 242 / 256)


def test_a_list_sweeps_and_two_lists_combine(capsys: Capture) -> None:
    found = printed(capsys, "drift", "--scale", "1,2", "--seed", "3,4", "--variant", "none")
    assert [(row["seed"], row["scale"]) for row in found["rows"]] == [(3, 1), (4, 1), (3, 2), (4, 2)]
    assert (found["settings"]["scale"], found["settings"]["seed"]) == ([1, 2], [3, 4])


def test_a_list_of_equals_is_still_a_list(capsys: Capture) -> None:
    """A script that sweeps over what it computed finds the same columns however the values fall."""
    found = printed(capsys, "drift", "--seed", "2,2", "--variant", "none")
    assert found["settings"]["seed"] == [2]
    assert [row["seed"] for row in found["rows"]] == [2, 2]


def test_each_row_of_a_sweep_is_the_row_of_its_own_command(capsys: Capture) -> None:
    found = printed(capsys, "drift", "--format", "float64,bfloat16", "--causal", "0,1", "--n-keys", "5")
    rows = iter(found["rows"])
    for format, causal in itertools.product(("float64", "bfloat16"), ("0", "1")):  # noqa: A001
        alone = printed(capsys, "drift", "--format", format, "--causal", causal, "--n-keys", "5")
        for row in alone["rows"]:
            assert next(rows) == {"format": format, "causal": causal == "1"} | row
    assert next(rows, None) is None


def test_gain_stands_for_gamma_with_the_norms_that_have_one(capsys: Capture) -> None:
    assert printed(capsys, "drift", "--variant", "rms", "--gain", "4") == printed(
        capsys, "drift", "--variant", "rms", "--gamma", "4"
    )
    swept = printed(capsys, "drift", "--variant", "rms", "--gain", "1,4")
    assert swept == printed(capsys, "drift", "--variant", "rms", "--gamma", "1,4")
    assert swept["settings"]["gamma"] == [1, 4]
    assert [(row["gamma"], row["bound"]) for row in swept["rows"]] == [(1, None), (1, 8), (4, None), (4, 128)]


def test_a_sweep_over_variants_says_what_each_of_them_read(capsys: Capture) -> None:
    found = printed(capsys, "drift", "--variant", "l2,rms", "--gain", "5")
    assert found["settings"]["variant"] == ["l2", "rms"]
    assert (found["settings"]["gain"], found["settings"]["gamma"]) == ([5], [5])
    twins = {row["variant"]: row["bound"] for row in found["rows"] if row["variant"] != "none"}
    assert twins == {"l2": 5, "rms": 200}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_where_the_flags_start_from(capsys: Capture, name: str) -> None:
    assert printed(capsys, "drift", "--preset", name)["settings"] == PRESETS[name].as_dict()
    changed = printed(capsys, "drift", "--preset", name, "--seed", "7")["settings"]
    assert changed == PRESETS[name].but(seed=7).as_dict()


def test_without_json_a_table_with_one_line_per_row_is_printed(capsys: Capture) -> None:
    assert main(["drift", "--scale", "1,8"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[: len(COLUMNS) - 1] == COLUMNS[:-1]
    assert [line.split()[:4] for line in lines] == [
        ["1", "none", "2.644", "0.4111"],
        ["1", "l2", "3.302", "0.5237"],
        ["8", "none", "169.2", "1"],
        ["8", "l2", "3.302", "0.5237"],
    ]
    assert [line.split()[-1] for line in lines] == ["-", "10", "-", "10"]
    assert len({len(line) for line in lines}) == 1  # columns stand below each other


@pytest.mark.parametrize("arguments", [["--help"], ["drift", "--help"], ["drift", "-h"]])
def test_help_succeeds(capsys: Capture, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in (COMMANDS if arguments == ["--help"] else ["drift"]))


@pytest.mark.parametrize("lab", COMPUTED)
def test_help_names_every_dial_with_its_range_and_default(capsys: Capture, lab: str) -> None:
    assert has(f"command.{lab}")
    with pytest.raises(SystemExit):
        main([lab, "--help"])
    out = capsys.readouterr().out
    words = " ".join(out.split())
    assert words.count(say(f"command.{lab}")) == 1  # what a command is for stands for no flag's value
    for dial in declarations(COMMANDS[lab].settings):
        assert f"--{dial.name.replace('_', '-')} " in words
        assert dial.label in words
        assert f"[{dial.write(dial.default)}]" in words
    assert "%%" not in out


@pytest.mark.parametrize("word", COMMANDS)
def test_help_names_every_preset_and_says_what_it_is(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("COLUMNS", "4000")  # no word is broken at its hyphen
    with pytest.raises(SystemExit):
        main([word, "--help"])
    words = " ".join(capsys.readouterr().out.split())
    for name in COMMANDS[word].presets:
        keys = [f"preset.{page}.{name}" for page in (word, "training")]
        assert f"{name} ({next(say(key) for key in keys if has(key))})" in words


# --- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["drift", "--scale", "0"], "qkdemo: scale must be between 0.01 and 1000, but is 0."),
        (["drift", "--scale", "1,2,2000"], "qkdemo: scale must be between 0.01 and 1000, but is 2000."),
        (["drift", "--scale", "-1"], "qkdemo: scale must be between 0.01 and 1000, but is -1."),
        (["drift", "--scale", "nan"], "qkdemo: scale must be between 0.01 and 1000, but is nan."),
        (["drift", "--scale", "inf"], "qkdemo: scale must be between 0.01 and 1000, but is inf."),
        (["drift", "--scale", "two"], "qkdemo: scale must be a number, but is 'two'."),
        (["drift", "--scale", ""], "qkdemo: scale must be a number, but is ''."),
        (["drift", "--scale", "1,,2"], "qkdemo: scale must be a number, but is ''."),
        (["drift", "--scale", "1,"], "qkdemo: scale must be a number, but is ''."),
        (["drift", "--n-keys", "2.5"], "qkdemo: n_keys must be a whole number between 2 and 256, but is 2.5."),
        (["drift", "--softcap", "0"], "qkdemo: softcap must be between 1 and 1000, but is 0."),
        (["drift", "--causal", "2"], "qkdemo: causal must be on or off (1 or 0), but is '2'."),
        (
            ["drift", "--format", "float8"],
            "qkdemo: format is 'float8', which is not known here. Known are float64, float32, bfloat16 and float16.",
        ),
        (["drift", "--variant", "l2", "--gamma", "2"], ""),
        (
            ["drift", "--variant", "none", "--gain", "2"],
            "qkdemo: gain does nothing when variant is none; it acts for l2.",
        ),
        (
            ["drift", "--variant", "none", "--gain", "2,3"],
            "qkdemo: gain does nothing when variant is none; it acts for l2.",
        ),
        (
            ["drift", "--softcap", "7"],
            "qkdemo: softcap does nothing when variant is l2; it acts for softcap, rms_softcap.",
        ),
        (["formats", "--mask", "-1e9"], "qkdemo: mask does nothing when causal is 0; it acts for 1."),
        (["drift", "--scale", "-1e9"], "qkdemo: scale must be between 0.01 and 1000, but is -1000000000."),
        (["drift", "--seed", "-.5,3"], "qkdemo: seed must be between 0 and 9999, but is -0.5."),
        (["drift", "--variant", "rms", "--gamma", "2", "--gain", "3"], ""),
        (["drift", "--variant", "rms", "--gain", "50"], "qkdemo: gamma must be between 0.1 and 10, but is 50."),
        (["drift", "--preset", "nonsense"], ""),
        (["drift", "--colour", "red"], "qkdemo: unrecognized arguments: --colour red"),
        (["drift", "--scal", "3"], "qkdemo: unrecognized arguments: --scal 3"),  # a later dial must not change a script
        (["drift", "--colour\nred"], "qkdemo: unrecognized arguments: --colour red"),
        (["drift", "8"], "qkdemo: unrecognized arguments: 8"),
        (["drift", "--scale"], "qkdemo drift: argument --scale: expected one argument"),
        (["nonsense"], ""),
        ([], "qkdemo: the following arguments are required: LAB"),
    ],
    ids=lambda value: " ".join(value).replace("\n", "⏎") or "nothing" if isinstance(value, list) else "",
)
def test_wrong_input_ends_with_code_two_and_one_line(capsys: Capture, arguments: list[str], line: str) -> None:
    """Where `line` is empty, the words are argparse's own or pinned elsewhere."""
    found = refused(capsys, *arguments)
    assert found.startswith("qkdemo")
    assert found == (line or found)


BOUNDED = [
    (lab, dial.name, dial.kind.below)
    for lab, known in COMPUTED.items()
    for dial in declarations(known.settings)
    if isinstance(dial.kind, Dial) and dial.kind.below
]


def test_every_place_that_is_looked_at_lies_within_what_there_is() -> None:
    places = {"query": "n_keys", "key": "n_keys", "step": "n_keys", "head": "n_heads"}
    for lab, known in COMPUTED.items():
        for dial in declarations(known.settings):
            assert dial.name not in places or (lab, dial.name, places[dial.name]) in BOUNDED


@pytest.mark.parametrize(("lab", "name", "other"), BOUNDED)
def test_a_value_that_another_dial_leaves_no_room_for_is_refused(
    capsys: Capture, lab: str, name: str, other: str
) -> None:
    bound = ("--" + other.replace("_", "-"), "2")
    line = f"qkdemo: {name} must be less than {other}, which is 2, but is 2."
    assert refused(capsys, lab, *bound, f"--{name}", "2") == line
    assert refused(capsys, lab, *bound, f"--{name}", "1,2") == line
    states, _ = _states(COMMANDS[lab], None, {other: "2", name: "1"})
    assert getattr(states[0], name) == 1
    states, _ = _states(COMMANDS[lab], None, {other: "2"})  # what nobody asked for is the lab's to choose
    assert getattr(states[0], name) == getattr(COMMANDS[lab].base, name)


def test_a_sweep_is_refused_if_one_of_its_states_leaves_no_room(capsys: Capture) -> None:
    line = "qkdemo: query must be less than n_keys, which is 4, but is 8."
    assert refused(capsys, "drift", "--query", "8", "--n-keys", "16,4") == line


def test_key_heads_that_do_not_divide_the_heads_are_refused(capsys: Capture) -> None:
    line = refused(capsys, "placement", "--n-heads", "4", "--n-kv-heads", "3")
    assert line == "qkdemo: n_kv_heads must divide n_heads, which is 4, but is 3."
    assert refused(capsys, "placement", "--n-heads", "2", "--n-kv-heads", "4")
    small = ("--n-heads", "4", "--d-model", "16", "--d-head", "8", "--n-keys", "4")
    assert printed(capsys, "placement", "--n-kv-heads", "2", *small)["settings"]["n_kv_heads"] == 2


@pytest.mark.parametrize(
    "word", ["drift", "l2", "none", "--json", "0x10", "1;2", "1 2", "٣,x", "{0}", "%s", "\x1b[31m"]
)
def test_no_word_in_place_of_a_number_gets_a_traceback_or_colours(capsys: Capture, word: str) -> None:
    assert refused(capsys, "drift", "--seed", word).isprintable()


def test_a_word_that_is_unknown_is_answered_with_those_that_are(capsys: Capture) -> None:
    assert "seed_table" in refused(capsys, "drift", "--preset", "nonsense")
    assert "drift" in refused(capsys, "nonsense")
    assert "rms" in refused(capsys, "drift", "--variant", "x")


def test_help_may_speak_of_per_cent(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES["en"], "dial.scale.help", "From 50 % (half) on.")
    with pytest.raises(SystemExit):
        main(["drift", "--help"])
    assert "From 50 % (half) on." in " ".join(capsys.readouterr().out.split())
