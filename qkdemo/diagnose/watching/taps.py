"""Where the attention calls of a model are seen: as q and k enter the product, after every norm and after rotary.

* `tapped(model, see)`: while it is open, `see(name, call)` is told of every attention call of `model`.

Three ways, each found by what the model uses:

* `transformers`: the functions of its `AttentionInterface`, which get q, k, mask, scale and window;
* `torch.nn.MultiheadAttention`: its input, projected once more as it does itself;
* everything else that calls `torch.nn.functional.scaled_dot_product_attention`: timm, torchtune, torchtitan, nanoGPT.
  By its module, or by a name under which the file of a module of the model imported it.

A call is told once, by the outermost way that sees it. What a function returns is handed on untouched. A call that
cannot be measured, as of tensors without data or under `vmap`, is warned of; the model goes on.
"""

import functools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkdemo.diagnose.watching.heads import Call

See: TypeAlias = Callable[[str, Call], None]
_within: Final = threading.local()  # whether this thread is inside a call that was told already, and in which module


@contextmanager
def tapped(model: nn.Module, see: See, running: tuple[tuple[Any, ...], dict[str, Any]] | None = None) -> Iterator[None]:
    """Tell `see` of every attention call of `model` while open; then everything is as it was. Nothing runs compiled.

    `running`: what `model` was called with, if it is opened by a hook of the model itself, which has begun by then.
    """
    compiled = _is_compiled(model)
    model = getattr(model, "_orig_mod", model)  # of what torch.compile returned: the module itself
    names = {
        module: name.replace("._orig_mod", "") or type(module).__name__
        for name, module in model.named_modules()
        if not hasattr(module, "_orig_mod")  # what torch.compile puts around a module
    }
    with ExitStack() as stack:
        if compiled and hasattr(torch.compiler, "set_stance"):  # from PyTorch 2.6 on
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(_modules_followed(model, names))
        stack.enter_context(_transformers_tapped(names, see))
        stack.enter_context(_multihead_tapped(names, see))
        stack.enter_context(_product_tapped(names, see))
        if running is not None and isinstance(model, nn.MultiheadAttention):
            _before_multihead(names[model], see, model, *running)
        yield


def _is_compiled(model: nn.Module) -> bool:
    """Whether torch.compile returned it or a part of it, or compiled a part in place."""
    parts = (module for module in model.modules() if module is not model)
    return hasattr(model, "_orig_mod") or any(
        hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None for part in parts
    )


def _tell(see: See, name: str, call: Callable[[], Call]) -> None:
    try:
        see(name, call())
    except (RuntimeError, ValueError, LookupError, ArithmeticError) as error:  # also of a device whose memory is full
        reason = str(error).split("\n", 1)[0]
        warnings.warn(f"{name}: a call of attention could not be measured ({reason})", RuntimeWarning, stacklevel=2)


def _told() -> bool:
    return bool(getattr(_within, "told", False))


@contextmanager
def _once() -> Iterator[bool]:
    """Whether this call is still to be told; what is called within it is not told again."""
    fresh = not _told()
    _within.told = True
    try:
        yield fresh
    finally:
        if fresh:
            _within.told = False


@contextmanager
def _modules_followed(model: nn.Module, names: Mapping[nn.Module, str]) -> Iterator[None]:
    """The name of the innermost module that is running stands last in `_within.path`; `model` itself runs already."""
    _within.path = path = [names[model]]

    def enter(name: str, *_: Any) -> None:  # of names alone: a compiler looks into what a hook holds
        path.append(name)

    def leave(*_: Any) -> None:
        path.pop()

    inner = [module for module in names if module is not model]
    handles = [module.register_forward_pre_hook(functools.partial(enter, names[module])) for module in inner]
    handles += [module.register_forward_hook(leave, always_call=True) for module in inner]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


# ---- transformers


@contextmanager
def _transformers_tapped(names: Mapping[nn.Module, str], see: See) -> Iterator[None]:
    utils = sys.modules.get("transformers.modeling_utils")
    if utils is None:
        yield
        return
    shared: dict[str, Callable[..., Any]] = utils.AttentionInterface._global_mapping
    tables = [shared, *_own_tables(names, utils)]
    kept = [dict(table) for table in tables]
    for table in tables:
        for word, function in list(table.items()):
            table[word] = _reporting(function, names, see)
    shared["eager"] = _reporting(None, names, see)
    try:
        yield
    finally:
        for table, before in zip(tables, kept, strict=True):
            table.clear()
            table.update(before)


def _own_tables(names: Mapping[nn.Module, str], utils: Any) -> list[dict[str, Callable[..., Any]]]:
    """The tables of modelling files that override a function for themselves."""
    files = {type(module).__module__ for module in names}
    interfaces = (getattr(sys.modules.get(file), "ALL_ATTENTION_FUNCTIONS", None) for file in files)
    found = {id(each): each for each in interfaces if isinstance(each, utils.AttentionInterface)}
    return [each._local_mapping for each in found.values()]


def _reporting(function: Callable[..., Any] | None, names: Mapping[nn.Module, str], see: See) -> Callable[..., Any]:
    """`function`, or the modelling file's own eager one, which also tells `see`."""

    def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **options: Any) -> Any:
        own = function or sys.modules[type(module).__module__].eager_attention_forward
        with _once() as fresh:
            if fresh and module in names:
                _tell(see, names[module], lambda: _of_transformers(module, query, key, mask, options))
            return own(module, query, key, value, mask, **options)

    return attend if function is None else functools.wraps(function)(attend)


def _of_transformers(module: nn.Module, query: Tensor, key: Tensor, mask: Any, options: Mapping[str, Any]) -> Call:
    scale = options.get("scaling")
    tensor = mask if isinstance(mask, Tensor) and mask.dim() == 4 else None
    causal = options.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    position = options.get("position_bias")
    bias = tensor if tensor is not None and tensor.dtype != torch.bool else None
    if position is not None:
        bias = position if bias is None else bias + position
    return Call(
        q=query,
        k=key,
        scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
        visible=tensor[..., : key.shape[2]] if tensor is not None and tensor.dtype == torch.bool else None,
        bias=None if bias is None else bias[..., : key.shape[2]],
        softcap=options.get("softcap"),
        causal=bool(causal) and tensor is None and query.shape[2] > 1,
        window=options.get("sliding_window") if tensor is None else None,
    )


# ---- torch.nn.MultiheadAttention


@contextmanager
def _multihead_tapped(names: Mapping[nn.Module, str], see: See) -> Iterator[None]:
    handles = []
    for module, name in names.items():
        if isinstance(module, nn.MultiheadAttention):
            before = functools.partial(_before_multihead, name, see)
            handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(module.register_forward_hook(_after_multihead, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _before_multihead(name: str, see: See, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert isinstance(module, nn.MultiheadAttention)
    given = dict(zip(("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask"), args, strict=False))
    _tell(see, name, lambda: _of_multihead(module, given | kwargs))
    _within.told = True


def _after_multihead(*_: Any) -> None:
    _within.told = False


@torch.no_grad()
def _of_multihead(module: nn.MultiheadAttention, given: Mapping[str, Any]) -> Call:
    def projected(x: Tensor, part: int, own: Any) -> Tensor:
        rows = slice(part * module.embed_dim, (part + 1) * module.embed_dim)
        packed: Any = module.in_proj_weight  # None where keys have a width of their own
        bias: Any = module.in_proj_bias
        x = x[None] if x.dim() == 2 else x if module.batch_first else x.transpose(0, 1)
        x = functional.linear(x, own if packed is None else packed[rows], None if bias is None else bias[rows])
        return x.reshape(*x.shape[:-1], module.num_heads, module.head_dim).transpose(1, 2)

    q, k = projected(given["query"], 0, module.q_proj_weight), projected(given["key"], 1, module.k_proj_weight)
    bias: Tensor | None = None
    visible: Tensor | None = None
    for mask in _masks(module, given):
        if mask.dtype == torch.bool:  # here True hides
            visible = ~mask if visible is None else visible & ~mask
        else:
            bias = mask if bias is None else bias + mask
    return Call(q=q, k=k, scale=module.head_dim**-0.5, visible=visible, bias=bias)


def _masks(module: nn.MultiheadAttention, given: Mapping[str, Any]) -> Iterator[Tensor]:
    """The masks given, each so that it broadcasts to [batch, heads, queries, keys]."""
    mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
    if mask is not None:
        yield mask.reshape(-1, module.num_heads, *mask.shape[1:]) if mask.dim() == 3 else mask
    if padding is not None:
        yield padding.reshape(-1, 1, 1, padding.shape[-1])


# ---- scaled_dot_product_attention


@contextmanager
def _product_tapped(names: Mapping[nn.Module, str], see: See) -> Iterator[None]:
    files = {kind.__module__ for module in names for kind in type(module).__mro__}
    original = functional.scaled_dot_product_attention

    @functools.wraps(original)
    def attend(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        with _once() as fresh:
            if fresh and query.dim() >= 3:
                options = dict(zip(("attn_mask", "dropout_p", "is_causal"), args, strict=False)) | kwargs
                _tell(see, _within.path[-1], lambda: _of_product(query, key, options))
            return original(query, key, value, *args, **kwargs)

    homes = [vars(functional), *(vars(sys.modules[file]) for file in sorted(files) if file in sys.modules)]
    places = [(home, name) for home in homes for name, value in home.items() if value is original]
    for home, name in places:
        home[name] = attend
    try:
        yield
    finally:
        for home, name in places:
            home[name] = original


def _of_product(query: Tensor, key: Tensor, options: Mapping[str, Any]) -> Call:
    scale, mask = options.get("scale"), options.get("attn_mask")
    q, k = (x[None] if x.dim() == 3 else x.flatten(0, -4) for x in (query, key))
    if isinstance(mask, Tensor) and mask.dim() > 4:
        mask = mask.expand(*query.shape[:-3], *mask.shape[-3:]).flatten(0, -4)
    boolean = isinstance(mask, Tensor) and mask.dtype == torch.bool
    visible = mask if boolean else None
    if options.get("is_causal"):  # torch aligns the first query with the first key
        visible = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    return Call(
        q=q,
        k=k,
        scale=q.shape[-1] ** -0.5 if scale is None else float(scale),
        visible=visible,
        bias=None if boolean else mask,
    )
