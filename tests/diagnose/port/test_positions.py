"""Positions that whoever ports a model brings: far from 0, with gaps, and such as are none."""

import math

import pytest
import torch

from qkdemo.diagnose.findings.of_port import of_port
from qkdemo.diagnose.port import port_of, run
from qkdemo.diagnose.readers.inputs import InputError

ROWS, WIDTH = 48, 64
FAR = torch.arange(ROWS) + 4000
DRAWN = torch.Generator().manual_seed(0)
Q, K = (torch.randn(1, heads, ROWS, WIDTH, generator=DRAWN) * 2 for heads in (2, 1))
GAIN = torch.randn(WIDTH, generator=DRAWN).mul(0.4).exp()


def logits(
    at: torch.Tensor, *, theta: float, later: int = 0, kind: torch.dtype = torch.float32, layout: str = "half"
) -> torch.Tensor:
    """Of RMSNorm, gain and rotary with angles in float32, as of Qwen3; q stands `later` than its positions."""

    def side(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        x = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * GAIN
        inverse = 1 / theta ** (torch.arange(0, WIDTH, 2).float() / WIDTH)
        angles = places.float()[:, None] * inverse
        one, other = x.chunk(2, -1) if layout == "half" else (x[..., ::2], x[..., 1::2])
        turned = one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()
        joined = torch.cat(turned, -1) if layout == "half" else torch.stack(turned, -1).flatten(-2)
        return joined.to(kind)

    made = (side(Q.to(kind), at + later) @ side(K.to(kind), at).mT).to(kind) * WIDTH**-0.5
    return made.masked_fill(torch.ones(ROWS, ROWS).triu(1) > 0, -math.inf)


def said_of(mine: torch.Tensor, reference: torch.Tensor, at: torch.Tensor, theta: float) -> dict[str, str]:
    """By key, the level of what is found."""
    given = {"q": Q.to(reference.dtype), "k": K.to(reference.dtype), "gamma_q": GAIN, "gamma_k": GAIN}
    given |= {"positions": at, "theta": torch.tensor(theta), "mine": mine, "reference": reference}
    return {finding.key: finding.level for finding in of_port(run(port_of(given)), "x").findings}


@pytest.mark.parametrize("theta", [1e4, 5e5, 1e6])
@pytest.mark.parametrize(("start", "step"), [(4000, 1), (30_000, 1), (131_072 - ROWS, 1), (0, 2730), (-9000, 1)])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_a_right_port_is_right_however_far_its_positions_are(
    kind: torch.dtype, start: int, step: int, theta: float
) -> None:
    at = torch.arange(ROWS) * step + start
    right = logits(at, theta=theta, kind=kind)
    assert said_of(right, right, at, theta).keys() == {"port_same", "port_reference"}
    moved = logits(at - at.min(), theta=theta, kind=kind)  # the same function: rotary knows distances alone
    found = said_of(moved, right, at, theta)
    assert found.keys() - {"port_same", "port_near", "port_row_stored"} == {"port_reference"}


@pytest.mark.parametrize("start", [4000, 131_072 - ROWS])
def test_a_wrong_one_is_wrong_there_too(start: int) -> None:
    at = torch.arange(ROWS) + start
    right = logits(at, theta=1e6)
    wrong = {
        "theta": logits(at, theta=1e4),
        "later": logits(at, theta=1e6, later=1),
        "layout": logits(at, theta=1e6, layout="pairs"),
        "epsilon": right * 1.01,
    }
    for mine in wrong.values():
        assert said_of(mine, right, at, 1e6) == {"port": "bad", "port_reference": "good"}


@pytest.mark.parametrize(
    ("positions", "key"),
    [
        (FAR[:1], "bad_positions"),
        (torch.arange(4096), "bad_positions"),  # of the whole model: which of them are q's?
        (torch.tensor(4000), "bad_positions"),
        (torch.arange(0), "bad_positions"),
        (torch.stack([FAR, FAR + 1, FAR + 2]), "bad_positions"),  # as of time, height and width
        (FAR[:, None].expand(ROWS, 2), "bad_positions"),
        (FAR.double().masked_fill(FAR == 4003, math.nan), "no_positions"),
        (FAR > 4003, "no_positions"),
    ],
)
def test_positions_that_are_not_those_of_q_are_named(positions: torch.Tensor, key: str) -> None:
    right = logits(FAR, theta=1e6)
    with pytest.raises(InputError) as raised:
        said_of(right, right, positions, 1e6)
    assert raised.value.key == key
    assert "positions" in str(raised.value)


@pytest.mark.parametrize(
    "positions", [FAR[None], FAR[:, None], FAR[None, None], FAR.expand(3, 1, ROWS), FAR.double(), FAR.int()]
)
def test_positions_are_read_in_every_shape_that_says_which(positions: torch.Tensor) -> None:
    right = logits(FAR, theta=1e6)
    assert said_of(right, right, positions, 1e6).keys() == {"port_same", "port_reference"}


def test_positions_may_be_parts_of_whole_ones() -> None:
    """As where rotary positions are interpolated."""
    at = torch.arange(ROWS) / 8
    right = logits(at, theta=1e4)
    assert said_of(right, right, at, 1e4).keys() == {"port_same", "port_reference"}
    assert "port_unknown_reference" in said_of(right, right, torch.arange(ROWS), 1e4)


def test_of_several_sequences_the_first_ones_positions_count() -> None:
    given = {"q": Q.expand(2, 2, ROWS, WIDTH), "k": K.expand(2, 1, ROWS, WIDTH), "gamma_q": GAIN, "gamma_k": GAIN}
    both = torch.stack([FAR, torch.arange(ROWS)])
    right = torch.stack([logits(at, theta=1e4)[0] for at in both])
    found = of_port(run(port_of(given | {"positions": both, "mine": right, "reference": right})), "x").findings
    assert {finding.key for finding in found} == {"port_part_same", "port_same", "port_reference"}


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("theta", [1e4, 1e6], "several_numbers"),
        ("softcap", [], "several_numbers"),
        ("rope_theta", [math.nan], "bad_number"),
        ("softcap", [-50.0], "bad_number"),
    ],
)
def test_a_theta_or_softcap_that_is_none_is_named(name: str, value: list[float], key: str) -> None:
    right = logits(FAR, theta=1e4)
    given = {"q": Q, "k": K, "mine": right, "reference": right, name: torch.tensor(value)}
    with pytest.raises(InputError) as raised:
        port_of(given)
    assert raised.value.key == key
    assert name in str(raised.value)


@pytest.mark.parametrize(("side", "counts"), [("q", ("64", "128")), ("k", ("64",))])
def test_of_a_gain_that_does_not_fit_it_is_said_whose_it_is(side: str, counts: tuple[str, ...]) -> None:
    right = logits(FAR, theta=1e4)
    with pytest.raises(InputError) as raised:
        port_of({"q": Q, "k": K, "mine": right, "reference": right, f"gamma_{side}": torch.ones(60)})
    assert raised.value.key == "bad_gain_of_port"
    assert all(word in str(raised.value) for word in (f"gamma_{side}", *counts))


@pytest.mark.parametrize(("kind", "wider"), [(torch.float32, "float64"), (torch.bfloat16, "float32")])
def test_what_rounding_may_leave_is_to_be_compared_in_a_wider_format(kind: torch.dtype, wider: str) -> None:
    right = logits(FAR, theta=1e6, kind=kind)
    moved = torch.randn(right.shape, generator=torch.Generator().manual_seed(1)) * 0.8 * torch.finfo(kind).eps
    near = []
    for mine in (logits(FAR - 4000, theta=1e6, kind=kind), right * (1 + moved).to(kind)):
        given = {"q": Q.to(kind), "k": K.to(kind), "gamma_q": GAIN, "gamma_k": GAIN, "theta": torch.tensor(1e6)}
        given |= {"positions": FAR, "mine": mine, "reference": right}
        found = {each.key: each for each in of_port(run(port_of(given)), "x").findings}
        near += [found[key] for key in ("port_near", "port_row_stored") if key in found]
    assert near
    assert all(wider in each.advice and str(kind).removeprefix("torch.") in each.advice for each in near)


@pytest.mark.parametrize("pair", [True, False])
def test_the_farthest_position_of_any_sequence_counts_also_without_q_and_k(*, pair: bool) -> None:
    places = torch.stack([torch.arange(ROWS), torch.arange(ROWS) + 100_000])
    right = torch.cat([logits(at, theta=1e6) for at in places])
    moved = torch.cat([logits(at - at.min(), theta=1e6) for at in places])
    given = {"q": Q.repeat(2, 1, 1, 1), "k": K.repeat(2, 1, 1, 1), "gamma_q": GAIN, "gamma_k": GAIN} if pair else {}
    given |= {"positions": places, "theta": torch.tensor(1e6)}
    for chosen in (slice(0, 2), slice(1, 2)):
        both = {"mine": moved[chosen], "reference": right[chosen]}
        rows = {name: x[chosen] if name in ("q", "k", "positions") else x for name, x in given.items()}
        found = of_port(run(port_of(rows | both)), "x").findings
        assert "bad" not in {finding.level for finding in found}
        assert "port_sequences" not in {finding.key for finding in found}
