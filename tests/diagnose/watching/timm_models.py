"""Vision transformers of timm, tiny. Their models need no torchvision; what timm reads pictures with does.

torchvision's builds go with one build of PyTorch each, so here an empty one stands in its place while timm is loaded.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from functools import cache
from typing import Any

import torch
from torch import nn


class _Named(type):
    """A class that has whatever is asked of it: a name."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torchvision and whatever lies in it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "torchvision":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module: types.ModuleType) -> None:
        def anything(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return _Named(name, (), {})

        module.__getattr__ = anything  # type: ignore[method-assign]


@cache
def loaded() -> Any:
    """timm itself."""
    empty = _Empty()
    sys.meta_path.insert(0, empty)
    try:
        import timm  # noqa: PLC0415  it takes seconds
    finally:
        sys.meta_path.remove(empty)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    return timm


def vision_transformer(*, qk_norm: bool) -> nn.Module:
    """timm's own class: two layers of three heads, 17 positions; weights and gains drawn so that no head is even."""
    shape = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "num_classes": 5}
    model: nn.Module = loaded().create_model("vit_tiny_patch16_224", qk_norm=qk_norm, **shape)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * (0.3 if parameter.dim() > 1 else 1.0))
    return model.eval()
