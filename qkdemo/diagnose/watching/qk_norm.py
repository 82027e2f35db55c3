"""Whether QK norm is really on in a model: configured, there, called once, and its output used.

* `assert_qk_norm(model, *batch)`: raises AssertionError, naming each layer and what is wrong with it;
* `qk_norm_of(model, *batch)`: the same as findings, one per attention layer.

A config may ask for the norm and the code never call it; a wrapper may call it twice; its output may be thrown away;
its gains may never have been loaded. Each of these has shipped.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, Final, Literal, TypeAlias

import torch
from torch import Tensor, nn

from qkdemo.diagnose.watching.heads import Call
from qkdemo.diagnose.watching.taps import tapped

Side: TypeAlias = Literal["q", "k"]
State: TypeAlias = Literal[
    "on", "off", "never called", "called twice", "not used", "one side only", "cannot tell", "none by design"
]

# q_norm, k_layernorm, norm_q, query_layernorm, q_rms_norm, q_ln, qk_norm. That of a latent (q_a_layernorm) is none.
_NAME: Final = re.compile(
    r"(?:(qk|query_key|q|k|query|key)_?(?:(?:layer|rms)?_?norm|ln)|(?:(?:rms_?)?norm|ln)_?(qk|q|k|query|key))\d?$"
)
_FLAG: Final = re.compile(r"(use_|with_|enable_)?(qk|query_key)_?(norm|layer_?norm|rms_?norm)(alization|alisation)?$")
_OF_V4: Final[Mapping[str, str]] = {"q_b_norm": "q", "kv_norm": "k"}
_SPREAD: Final = 1e-3  # relative spread of the lengths of vectors that a norm without gain has made equal
_ALIKE: Final = 0.99  # |cosine| of inputs from which on their q can have one length without any norm
_EQUAL: Final = 1e-2  # relative difference of lengths up to which a vector is the norm's own output, in any format


@dataclass(frozen=True)
class Finding:
    """What one attention layer does. `fresh`: its gains are exactly what a new model has."""

    layer: str
    state: State
    words: str
    fresh: bool = False


@dataclass
class _Layer:
    """What was seen of one layer while a batch went through."""

    attended: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, list[Tensor]] = field(default_factory=dict)  # of each norm's outputs
    entered: dict[Side, Tensor] = field(default_factory=dict)  # lengths of what entered the last product
    d_head: int = 0
    varied: bool = False  # whether the layer's inputs differ in direction


def assert_qk_norm(model: nn.Module, *args: Any, **kwargs: Any) -> list[Finding]:
    """Pass a batch through and raise AssertionError unless every attention layer normalises q and k, once, and uses it.

    `args` and `kwargs` are what `model` takes; a batch that is a mapping whose keys are parameters of `forward` is
    taken apart, and a `transformers` language model may be given without. Layers of Llama 4 without rotary positions
    have no norm by design, and may lack one beside layers that have it. Returns the findings. Raises ValueError if no
    attention call can be seen, or there is no batch to try it with.
    """
    found = qk_norm_of(model, *args, **kwargs)
    known = {"on", "none by design"} if any(each.state == "on" for each in found) else {"on"}
    wrong = [each for each in found if each.state not in known]
    if wrong:
        lines = "\n".join(f"  {each.layer}: {each.words}" for each in wrong)
        unsure = any(each.state in ("off", "cannot tell") for each in wrong)  # a norm may have a name unknown here
        seen = "seen to be on" if unsure else "on"
        raise AssertionError(f"QK norm is not {seen} in {len(wrong)} of {len(found)} attention layers.\n{lines}")
    return found


def qk_norm_of(model: nn.Module, *args: Any, **kwargs: Any) -> list[Finding]:
    """What each attention layer does with q and k, from one batch. Raises ValueError as `assert_qk_norm`."""
    model = getattr(model, "_orig_mod", model)  # of what torch.compile returned: the module itself
    if not args and not kwargs:
        kwargs = _own_batch(model)
    batch = args[0] if len(args) == 1 else None
    if isinstance(batch, Mapping) and batch.keys() <= signature(model.forward).parameters.keys():
        args, kwargs = (), {**batch, **kwargs}
    layers: dict[str, _Layer] = {}
    modules = {name or type(model).__name__: module for name, module in model.named_modules()}
    inputs: dict[str, bool] = {}

    def see(name: str, call: Call) -> None:
        layer = layers.setdefault(name, _Layer())
        layer.attended += 1
        layer.d_head = call.q.shape[-1]
        layer.varied = layer.varied or inputs.get(name, _varied(call.q))
        layer.entered = {"q": call.q.detach().float().norm(dim=-1), "k": call.k.detach().float().norm(dim=-1)}

    with torch.no_grad(), _norms_counted(modules, layers), _inputs_seen(modules, inputs), tapped(model, see):
        model(*args, **kwargs)
    seen = {name: layer for name, layer in layers.items() if layer.attended}
    if not seen:
        raise ValueError(
            "No attention call was seen. It is seen through transformers' AttentionInterface, nn.MultiheadAttention "
            "and torch.nn.functional.scaled_dot_product_attention; in code of your own, call the last."
        )
    return [_finding(name, layer, modules.get(name), model) for name, layer in seen.items()]


def norm_names(module: nn.Module) -> dict[str, str]:
    """The norms of q and k among the children of an attention module: name → q, k or qk.

    An identity under such a name is none: timm puts it where no norm was asked for. DeepSeek V4 has q_b_norm, and
    kv_norm of keys that are its values; without q_b_norm a kv_norm is one of a latent.
    """
    children = dict(module.named_children())
    if children.keys() >= _OF_V4.keys():
        return dict(_OF_V4)
    found = {}
    for name, child in module.named_children():
        match = _NAME.fullmatch(name)
        if match and not isinstance(child, nn.Identity):
            side = (match[1] or match[2]).replace("query_key", "qk").replace("query", "q").replace("key", "k")
            found[name] = side
    return found


def _own_batch(model: nn.Module) -> dict[str, Any]:
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if not isinstance(size, int):
        raise ValueError("Give a batch to try it with: assert_qk_norm(model, batch).")
    device = next(model.parameters()).device
    return {"input_ids": torch.arange(8, device=device)[None] % size}


@contextmanager
def _norms_counted(modules: dict[str, nn.Module], layers: dict[str, _Layer]) -> Iterator[None]:
    """Counts the calls of every norm of q and k, and keeps the lengths of what it returns."""
    handles = []
    for layer_name, module in modules.items():
        for name in norm_names(module):
            layer = layers.setdefault(layer_name, _Layer())
            layer.calls[name] = 0
            handles.append(getattr(module, name).register_forward_hook(_counter(layer, name)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _inputs_seen(modules: Mapping[str, nn.Module], inputs: dict[str, bool]) -> Iterator[None]:
    """Notes whether the inputs of a module differ in direction: rotary turns equal ones apart, and keeps lengths."""

    def see(name: str, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        given = (x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.is_floating_point())
        if (first := next(given, None)) is not None:
            inputs[name] = _varied(first)

    handles = [
        module.register_forward_pre_hook(partial(see, name), with_kwargs=True) for name, module in modules.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _varied(x: Tensor) -> bool:
    """Whether the vectors along the last axis point in more than one direction, up to their sign."""
    rows = torch.nn.functional.normalize(x.detach().float().reshape(-1, x.shape[-1] if x.dim() else 1), dim=-1)
    return bool(((rows @ rows[:1].mT).abs() < _ALIKE).any())


def _counter(layer: _Layer, name: str) -> Any:
    def count(_: nn.Module, __: Any, output: Any) -> None:
        layer.calls[name] += 1
        if isinstance(output, Tensor):
            layer.lengths.setdefault(name, []).append(output.detach().float())

    return count


def _finding(name: str, layer: _Layer, module: nn.Module | None, model: nn.Module) -> Finding:
    norms = norm_names(module) if module is not None else {}
    if not norms:
        return _by_length(name, layer, module, model)
    fresh = module is not None and all(_is_fresh(getattr(module, norm)) for norm in norms)
    sides = set("".join(norms.values()))
    if sides != {"q", "k"}:
        missing = ({"q", "k"} - sides).pop()
        return Finding(name, "one side only", f"it has {', '.join(norms)}, and no norm of {missing}.", fresh)
    for norm, side in norms.items():
        expected = layer.attended * len(side)
        calls = layer.calls[norm]
        if not calls:
            return Finding(name, "never called", f"{norm} is there, and was never called.", fresh)
        if calls > expected:
            return Finding(name, "called twice", f"{norm} was called {calls} times for {expected}.", fresh)
        entered = layer.entered["q" if side == "q" else "k"]
        if len(side) == 1 and not _used(layer.lengths.get(norm, []), entered, layer.d_head):
            words = f"what {norm} returns is not what enters the product: its vectors have other lengths."
            return Finding(name, "not used", words, fresh)
    words = f"{' and '.join(norms)} called once each."
    if fresh:
        words += " Their gains are exactly those of a new model: check that the checkpoint's were loaded."
    return Finding(name, "on", words, fresh)


def _without_by_design(module: nn.Module | None) -> bool:
    """Whether it is a layer of Llama 4 without rotary positions in a model that has its norm in the others."""
    if type(module).__name__ != "Llama4TextAttention":
        return False
    return not getattr(module, "use_rope", True) and bool(
        getattr(getattr(module, "config", None), "use_qk_norm", False)
    )


def _by_length(name: str, layer: _Layer, module: nn.Module | None, model: nn.Module) -> Finding:
    """A layer without norm modules: a norm without gain is seen by its vectors, which all have one length."""
    spread = {side: float((x.amax() - x.amin()) / x.mean()) for side, x in layer.entered.items()}
    if all(x < _SPREAD for x in spread.values()):
        if not layer.varied:
            words = "no norm module, and its inputs all have one direction, so that equal lengths show nothing: "
            return Finding(name, "cannot tell", words + "try a batch of different tokens.")
        return Finding(name, "on", "no norm module, and all vectors of q, and all of k, have one length.")
    if _without_by_design(module):
        return Finding(name, "none by design", "no norm: Llama 4 has none in layers without rotary positions.")
    equal = [side for side, x in spread.items() if x < _SPREAD]
    if equal:
        other = "k" if equal == ["q"] else "q"
        words = f"all vectors of {equal[0]} have one length, those of {other} have not: "
        words += f"no norm module of {other} is known by its name, and one with gains leaves any lengths."
        return Finding(name, "cannot tell", words)
    flags = [flag for flag, value in vars(getattr(model, "config", object)).items() if _FLAG.fullmatch(flag) and value]
    lengths = layer.entered["q"]
    words = f"lengths of q run from {float(lengths.min()):.3g} to {float(lengths.max()):.3g}, "
    words += "and no norm of q or k is found by its name."
    if flags:
        words = f"the config says {flags[0]}, but {words}"
    return Finding(name, "off", words)


def _used(outputs: list[Tensor], entered: Tensor, d_head: int) -> bool:
    """Whether the lengths that entered the product are those that the norm returned; rotary keeps a vector's length."""
    if not outputs:
        return True  # no tensor to compare
    returned = outputs[-1]
    width, all_heads = returned.shape[-1], entered.shape[1] * d_head
    if width != d_head:  # a norm over all heads, whose output is split before the product; keys may be repeated then
        if all_heads % width:
            return True
        entered = (entered.square().sum(1) / (all_heads // width)).sqrt()
    one, other = (x.flatten().sort().values for x in (returned.norm(dim=-1), entered))
    if one.numel() != other.numel():
        return True  # a cache, or repeated heads, came in between
    return bool(((one - other).abs() <= _EQUAL * other.abs().clamp_min(1e-6)).all())


def _is_fresh(norm: nn.Module) -> bool:
    gains = [p for name, p in norm.named_parameters() if "bias" not in name]
    return bool(gains) and all(bool((p == 1).all()) or bool((p == 0).all()) for p in gains)
