"""Models that come with Penstock, in plain torch: one file each, with a `build` function of keyword options.

`build` returns what a user's own function returns: (module, example_inputs) or (module, example_inputs, evaluation).
Its keyword parameters (int, float, bool or str, by annotation) are the options of `zoo:name?key=value`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.reference import ZooReference

_CONVERTERS: dict[str, type] = {"int": int, "float": float, "str": str}
LARGEST = 2**31 - 1
"""Of whole numbers as options: PyTorch's own sizes and seeds end at twice as many bits."""
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def model_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def check_name(reference: ZooReference) -> None:
    """Refuses a model that is not here."""
    if reference.name not in model_names():
        raise PenstockError(
            code="unknown-model",
            what=f"the zoo has no model {reference.name!r}",
            where=str(reference),
            hint=f"it has: {', '.join(model_names())}",
        )


def build(reference: ZooReference) -> Any:
    """What the zoo model's `build` returns for the reference's options."""
    check_name(reference)
    function = importlib.import_module(f"{__name__}.{reference.name}").build
    parameters = inspect.signature(function).parameters
    options: dict[str, Any] = {}
    for key, text in reference.options:
        if key not in parameters:
            raise PenstockError(
                code="unknown-option",
                what=f"{reference.name} has no option {key!r}",
                where=str(reference),
                hint=f"its options: {', '.join(f'{p.name}={p.default}' for p in parameters.values())}",
            )
        options[key] = _value(reference, key, text, str(parameters[key].annotation))
    return function(**options)


def _value(reference: ZooReference, key: str, text: str, annotation: str) -> Any:
    try:
        value = _BOOLEANS[text.lower()] if annotation == "bool" else _CONVERTERS[annotation](text)
    except (ValueError, KeyError):
        raise PenstockError(
            code="bad-option",
            what=f"{key}={text!r} is not of type {annotation}",
            where=str(reference),
            hint=f"write zoo:{reference.name}?{key}=<{annotation}>",
        ) from None
    if isinstance(value, int) and abs(value) > LARGEST:
        raise PenstockError(
            code="bad-option", what=f"{key} is a number of {len(text)} digits", where=f"zoo:{reference.name}",
            limit=f"whole numbers are at most {LARGEST:,}", hint=f"write zoo:{reference.name}?{key}=<{annotation}>",
        )  # fmt: skip
    return value
