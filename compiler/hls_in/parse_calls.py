"""What a call gives a function: also what it leaves out and the function says itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.compiler.hls_in.parse_templates import template_of

cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind


def given_to(call: Any) -> list[Any]:
    """The arguments of a call, in the order of the function's."""
    given, function = list(call.get_arguments()), call.referenced
    if function is None or all(one.location.file is not None for one in given):
        return given
    template = template_of(function)
    said = [_parameters(one) for one in (function, function.canonical, template) if one is not None]
    found: list[Any] = []
    for place, one in enumerate(given):
        usual = [
            value for parameters in said if len(parameters) == len(given)
            for value in [_value(parameters[place])] if value is not None
        ]  # fmt: skip
        found.append(usual[0] if one.location.file is None and usual else one)
    return found


def is_constexpr(function: Any) -> bool:
    """Whether a function is one that the compiler may work out; what was made of a template is what that is."""
    written = template_of(function) or function.get_definition() or function
    if function.kind != CursorKind.FUNCTION_DECL:
        return False
    before = (token.spelling for token in written.get_tokens() if token.extent.start.offset < written.location.offset)
    return "constexpr" in before


def _parameters(function: Any) -> list[Any]:
    return [child for child in function.get_children() if child.kind == CursorKind.PARM_DECL]


def _value(parameter: Any) -> Any:
    """What a parameter is if nothing is given."""
    values = [child for child in parameter.get_children() if child.kind.is_expression()]
    return values[-1] if values else None
