"""The shapes and types of a call are checked, as jaxtyping’s own decorator checks them: in tests alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jaxtyping
import pytest
import torch
from beartype import BeartypeConf, beartype
from jaxtyping import Float
from torch import Tensor

from qkdemo.attention.norms import NORMS, normalise
from qkdemo.attention.pipeline import Pipeline
from qkdemo.attention.rotary import rotate
from tests.shapes import checked

TYPED = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeError))
REFUSED = "violates type hint|check"  # and no error of torch
ROW, OTHER = torch.ones(2, 3), torch.ones(2, 4)


@checked(typechecker=TYPED)
def added(one: Float[Tensor, "rows columns"], other: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    return one + other


@checked(typechecker=TYPED)
def cut(x: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    return x[:, 1:]


@checked(typechecker=TYPED)
def within(x: Float[Tensor, "rows columns"]) -> Float[Tensor, "columns rows"]:
    return added(x.mT, x.mT)  # whose rows are the columns of this call


@checked(typechecker=TYPED)
def each(x: list[Float[Tensor, "rows"]]) -> tuple[Float[Tensor, "rows"], ...]:
    return tuple(x)


@checked(typechecker=TYPED)
def whole(x: int, *others: int, share: float = 1) -> str:
    return str(x + sum(others) + share)


@checked(typechecker=TYPED)
def lies(x: int) -> str:
    return x  # type: ignore[return-value]


@checked(typechecker=TYPED)
def rows_of(x: Float[Tensor, "rows columns"]) -> Iterator[Float[Tensor, "columns"]]:
    yield from x


@checked(typechecker=TYPED)
@dataclass(frozen=True)
class Pair:
    q: Float[Tensor, "rows columns"]
    k: Float[Tensor, "rows columns"]

    @classmethod
    @checked(typechecker=TYPED)
    def of(cls, q: Float[Tensor, "rows columns"]) -> "Pair":
        return cls(q, q)


@checked(typechecker=TYPED)
@dataclass(frozen=True)
class Named(Pair):
    name: str = ""


def test_what_agrees_passes() -> None:
    assert added(ROW, ROW).shape == ROW.shape
    assert within(ROW).shape == (3, 2)
    assert len(each([ROW[0], ROW[1]])) == 2
    assert whole(1, 2, share=3) == "6"  # a whole number stands for a float
    assert [row.tolist() for row in rows_of(ROW)] == ROW.tolist()
    assert Pair.of(ROW).k is ROW
    assert Named(OTHER, OTHER, "other").name == "other"
    assert added(OTHER, OTHER).shape == OTHER.shape  # another call has other shapes


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: added(ROW, OTHER),
        lambda: added(ROW[0], ROW[0]),
        lambda: added(ROW, ROW.long()),
        lambda: added(ROW.tolist(), ROW),
        lambda: cut(ROW),
        lambda: whole("1"),
        lambda: whole(1, "2"),
        lambda: whole(1, share="3"),
        lambda: lies(1),
        lambda: rows_of(ROW[0]),
        lambda: Pair(ROW, OTHER),
        lambda: Pair.of(ROW[0]),
        lambda: Named(ROW, ROW, name=1),  # type: ignore[arg-type]
        lambda: Named(ROW, OTHER),
    ],
)
def test_what_does_not_agree_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=REFUSED):
        wrong()


def test_a_call_that_failed_leaves_no_shape_behind() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=REFUSED):
            added(ROW, OTHER)
        assert added(OTHER, OTHER).shape == OTHER.shape


def test_the_modules_of_the_project_are_checked_so() -> None:
    assert jaxtyping.jaxtyped is checked
    with pytest.raises(TypeError, match=REFUSED):
        rotate(ROW, torch.ones(3))  # two positions of q, three numbers
    with pytest.raises(TypeError, match=REFUSED):
        normalise(ROW.tolist(), NORMS["rms"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=REFUSED):
        Pipeline(norm="none of these")  # type: ignore[arg-type]
