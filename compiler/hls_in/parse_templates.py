"""What pragmas may name and syntax does not show: constants that a template was made with, and macros."""

from __future__ import annotations

import itertools
from ctypes import c_uint
from importlib import import_module
from typing import Any

cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
_lib: Any = cindex.conf.lib
_lib.clang_Cursor_isMacroFunctionLike.argtypes, _lib.clang_Cursor_isMacroFunctionLike.restype = [cindex.Cursor], c_uint
_MOST_MACROS, _MOST_WORDS = 2000, 50


def template_of(cursor: Any) -> Any | None:
    template = _lib.clang_getSpecializedCursorTemplate(cursor)
    return template if template is not None and template.kind != CursorKind.NO_DECL_FOUND else None


def given_constants(function: Any) -> list[list[Any]]:
    """Names and values of the constants that a function of a template was made with, and its struct: pragmas name
    them."""
    found: list[list[Any]] = []
    for one in (function.semantic_parent, function):
        template = template_of(one) if one is not None else None
        if one is None or template is None:
            continue
        kinds = (
            CursorKind.TEMPLATE_NON_TYPE_PARAMETER, CursorKind.TEMPLATE_TYPE_PARAMETER,
            CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
        )  # fmt: skip
        parameters = [child for child in template.get_children() if child.kind in kinds]
        for at, parameter in enumerate(parameters[: max(0, one.get_num_template_arguments())]):
            if one.get_template_argument_kind(at) == cindex.TemplateArgumentKind.INTEGRAL:
                found.append([parameter.spelling, one.get_template_argument_value(at)])
    return found


def macros(root: Any, files: set[str]) -> dict[str, str]:
    """Macros without arguments, and what they stand for: pragmas name them, and only their text is at hand."""
    found: dict[str, str] = {}
    for cursor in root.get_children():
        file = cursor.location.file
        if cursor.kind != CursorKind.MACRO_DEFINITION or file is None or file.name not in files:
            continue
        if len(found) < _MOST_MACROS and not _lib.clang_Cursor_isMacroFunctionLike(cursor):
            words = [token.spelling for token in itertools.islice(cursor.get_tokens(), 1, _MOST_WORDS + 1)]
            if len(words) < _MOST_WORDS:
                found[cursor.spelling] = " ".join(words)
    return found
