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
_MOST_MACROS, _MOST_WORDS, _MOST_BASES = 2000, 50, 8
_INTEGER = 1
"""What libclang says of a value that is an integer."""


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
            given = one.get_template_argument_kind(at)
            if given == cindex.TemplateArgumentKind.INTEGRAL:
                found.append([parameter.spelling, one.get_template_argument_value(at)])
            elif given == cindex.TemplateArgumentKind.TYPE:
                record = one.get_template_argument_type(at).get_canonical().get_declaration()
                found += [[f"{parameter.spelling}::{name}", value] for name, value in members(record).items()]
    return found


def members(record: Any, deep: int = 0) -> dict[str, int]:
    """The constants of a struct, and of those that it is made of: `static const unsigned n_in = 16`."""
    found: dict[str, int] = {}
    if record is None or deep > _MOST_BASES:
        return found
    for child in record.get_children():
        if child.kind == CursorKind.CXX_BASE_SPECIFIER:
            found = members(child.type.get_canonical().get_declaration(), deep + 1) | found
        elif child.kind == CursorKind.VAR_DECL and child.type.is_const_qualified() and len(found) < _MOST_MACROS:
            result = _lib.clang_Cursor_Evaluate(child)
            if result is not None and _lib.clang_EvalResult_getKind(result) == _INTEGER:
                found[child.spelling] = _lib.clang_EvalResult_getAsLongLong(result)
        elif child.kind == CursorKind.ENUM_DECL:
            found |= {one.spelling: one.enum_value for one in child.get_children()}
    return found


def named_members(root: Any, files: set[str]) -> dict[str, str]:
    """The constants of the structs that a source declares, by the struct's name: pragmas name them too."""
    found: dict[str, str] = {}
    for cursor in root.get_children():
        file = cursor.location.file
        if file is None or file.name not in files or len(found) >= _MOST_MACROS:
            continue
        if cursor.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC):
            found |= named_members(cursor, files)
        elif cursor.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL) and cursor.spelling:
            found |= {f"{cursor.spelling}::{name}": str(value) for name, value in members(cursor).items()}
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
