"""`timm:mixer_s32_224?img_size=32`, `torchvision:VisionTransformer?...`: models of images.

By the library's name, whose sizes are mostly fixed, or by the class, whose arguments are all free.
"""

# neither library may be there, and both have few types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.frontend.libraries.build import Recipe
from penstock.compiler.frontend.libraries.called import Arguments
from penstock.compiler.frontend.libraries.examples import noise
from penstock.compiler.frontend.libraries.values import (
    input_option,
    known_only,
    simple_defaults,
    size_option,
    with_classes,
)
from penstock.compiler.reference import LibraryReference


def recipe(reference: LibraryReference, options: dict[str, Any]) -> Recipe:
    make = _timm(reference, options) if reference.library == "timm" else _torchvision(reference, options)
    batch, shape = size_option(reference, "batch", 1), input_option(reference)
    return Recipe(make, lambda module: Arguments((noise(*(shape or (batch, *_image(module, options)))),)))


def _timm(reference: LibraryReference, options: dict[str, Any]) -> Callable[[], nn.Module]:
    import timm  # pyright: ignore[reportMissingImports]

    if timm.is_model(reference.model):
        return lambda: timm.create_model(reference.model, pretrained=False, **options)
    return _by_class(reference, options, timm.models, timm.list_models())


def _torchvision(reference: LibraryReference, options: dict[str, Any]) -> Callable[[], nn.Module]:
    from torchvision import models  # pyright: ignore[reportMissingImports]

    names = [str(name) for name in models.list_models()]
    if reference.model in names:
        return lambda: models.get_model(reference.model, weights=None, **options)
    return _by_class(reference, options, models, names)


def _by_class(
    reference: LibraryReference, options: dict[str, Any], package: Any, names: Iterable[str]
) -> Callable[[], nn.Module]:
    kind: Any = getattr(package, reference.model, None)
    if not inspect.isclass(kind) or not issubclass(kind, nn.Module):
        raise PenstockError(
            code="unknown-model", what=f"{reference.library} has no model {reference.model!r}", where=str(reference),
            hint=nearest(reference.model, names, "name a model of the library, or a class of its models"),
        )  # fmt: skip
    known_only(reference, options, simple_defaults(kind))
    given = with_classes(reference, kind, options)
    return lambda: kind(**given)


def _image(module: Any, options: dict[str, Any]) -> tuple[int, ...]:
    """Channels, height and width: as asked for, else as the model was made for."""
    channels, height, width = getattr(module, "default_cfg", {}).get("input_size", (3, 224, 224))
    size = options.get("img_size", options.get("image_size", (height, width)))
    height, width = (size, size) if isinstance(size, int) else size
    return options.get("in_chans", channels), height, width
