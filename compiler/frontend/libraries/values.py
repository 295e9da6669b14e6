"""Options of a reference are text; here they become the values that a library takes, or are refused by name."""

# options are values of any kind
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.utils._pytree import tree_leaves

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.reference import BESIDE, LibraryReference

OWN = ("batch", "seq", "input", "part", "seed", "cache", "chunk", *BESIDE)
"""Options that are ours with every library; all others go to the library."""
_FORBIDDEN = ("pretrained", "checkpoint", "cache_dir", "backbone", "weights", "device", "dtype", "hub")
"""In the name of an option: what would read files or the network, or leave float32 on the CPU."""
_MOST_DIM, _MOST_TEXT, _MOST_LAYERS = 2**28, 200, 1000
_COUNTS = ("layer", "block", "depth", "stage")
"""In the name of an option that says how many modules there are: each takes time, whatever its size."""
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None}


def literal(text: str) -> Any:
    """A value as Python would read it: numbers, true, false, none, and numbers joined by commas; else text.

    Lists of lists are written as JSON writes them: `[[["global"], 2]]`.
    """
    if text.startswith("["):
        try:
            return tuple(json.loads(text))
        except (ValueError, RecursionError):
            return text
    if "," in text:
        return tuple(literal(item) for item in text.split(",") if item)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if math.isfinite(value) else text
    return text


def library_options(reference: LibraryReference) -> dict[str, Any]:
    """The options that are the library's, as values; what could reach beyond the model is refused."""
    found: dict[str, Any] = {}
    for key, text in reference.options:
        if key in OWN:
            continue
        if not key.isidentifier() or key.startswith("_") or len(text) > _MOST_TEXT or not text.isprintable():
            raise bad_option(reference, f"{key[:80]!r} is no option of a model", "write key=value")
        value = literal(text)
        numbers = tree_leaves(value)
        if any(word in key for word in _FORBIDDEN) and not (key.endswith("_out_indices") and _whole(numbers)):
            raise bad_option(
                reference,
                f"the option {key!r} is not taken",
                "leave it out: nothing is downloaded, weights come from weights=FILE or are random",
            )
        nested = isinstance(value, tuple) and len(numbers) != len(value)
        most = _MOST_LAYERS if nested or any(word in key for word in _COUNTS) else _MOST_DIM
        if any(isinstance(n, int) and abs(n) > most for n in numbers):
            raise bad_option(reference, f"{key}={text} is out of range", f"whole numbers go up to {most} here")
        found[key] = value
    return found


def _whole(numbers: list[Any]) -> bool:
    """What names no file, whatever the option is called: `backbone_out_indices=1,2`."""
    return all(type(one) is int for one in numbers)


def known_only(reference: LibraryReference, options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse an option that the model does not know: libraries often take it in silence."""
    for key in options:
        if key not in known:
            listed = "its options: " + ", ".join(f"{k}={v}" for k, v in list(known.items())[:40])
            raise PenstockError(
                code="unknown-option", what=f"{reference.model} has no option {key!r}", where=str(reference),
                hint=nearest(key, known, listed),
            )  # fmt: skip


def with_classes(reference: LibraryReference, model: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are classes, as `block_layer=ResBlock`, by their names in the file that defines the model."""
    signature, file = parameters_of(model), vars(sys.modules[model.__module__])
    found: dict[str, Any] = {}
    for key, value in options.items():
        default = signature[key].default if key in signature else None
        found[key] = value
        if isinstance(value, str) and callable(default):
            known = {name: kind for name, kind in file.items() if inspect.isclass(kind) and issubclass(kind, nn.Module)}
            if value not in known:
                raise bad_option(
                    reference, f"{key}={value!r} is no class that {model.__name__} knows",
                    nearest(value, known, "name one of " + ", ".join(sorted(known))),
                )  # fmt: skip
            found[key] = known[value]
    return found


_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(model: type) -> dict[str, inspect.Parameter]:
    """Of the constructor; where it hands on what it does not know (`**kwargs`), those of the classes below too."""
    found: dict[str, inspect.Parameter] = {}
    for kind in model.__mro__:
        if "__init__" not in vars(kind):
            continue
        own = inspect.signature(kind.__init__).parameters
        found = {**{name: one for name, one in own.items() if one.kind not in _ANY}, **found}
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in own.values()):
            break
    return found


def simple_defaults(model: type) -> dict[str, Any]:
    """Parameters that text can give, by name, with their defaults; what is required is shown as such."""
    found: dict[str, Any] = {}
    for name, parameter in parameters_of(model).items():
        plain = parameter.default is None or isinstance(parameter.default, bool | int | float | str | tuple | list)
        if parameter.default is inspect.Parameter.empty or plain or callable(parameter.default):
            default = parameter.default
            needed = default is inspect.Parameter.empty
            found[name] = "(needed)" if needed else getattr(default, "__name__", default)
    return {name: value for name, value in found.items() if name not in ("self", "device", "dtype")}


def size_option(reference: LibraryReference, name: str, default: int) -> int:
    text = dict(reference.options).get(name)
    if text is None:
        return default
    if not text.isdecimal() or not 0 < len(text) < 10 or int(text) < (0 if name == "seed" else 1):
        raise bad_option(reference, f"{name}={text!r} is no size", f"write a whole number: {name}={default}")
    return int(text)


def input_option(reference: LibraryReference) -> tuple[int, ...] | None:
    """`input=3,32,32`: the shape of the example input, whole."""
    text = dict(reference.options).get("input")
    if text is None:
        return None
    sizes = text.split(",")
    if not all(s.isdecimal() and 0 < len(s) < 10 and int(s) > 0 for s in sizes):
        raise bad_option(reference, f"input={text!r} is no shape", "write whole numbers: input=1,3,32,32")
    return tuple(int(s) for s in sizes)


def bad_option(reference: LibraryReference, what: str, hint: str) -> PenstockError:
    return PenstockError(code="bad-option", what=what, where=str(reference), hint=hint)
