"""The process that runs libclang: sources in on stdin, their syntax as JSON out on stdout.

It is a process of its own with bounds on time and memory, because a hostile source may make a compiler run for ever,
fill memory or crash. It reads no file: all text comes in with the request. What it cannot express is a "bad" node
with its place, so that whoever reads the tree can report all of them at once.
"""

from __future__ import annotations

import json
import resource
import sys
from ctypes import c_double, c_int, c_longlong
from importlib import import_module
from typing import Any

# its Python side has no types
cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
TypeKind: Any = cindex.TypeKind
ClangCursor = Any
SyntaxList = list[Any]
BINARY = dict(
    enumerate(
        "* / % + - << >> <=> < > <= >= == != & ^ | && || = *= /= %= += -= <<= >>= &= ^= |= ,".split(),  # noqa: SIM905
        3,
    )
)
UNARY = {1: "p++", 2: "p--", 3: "++", 4: "--", 5: "&", 6: "*", 7: "+", 8: "-", 9: "~", 10: "!"}
INTEGERS = {
    TypeKind.BOOL: (1, False), TypeKind.CHAR_U: (8, False), TypeKind.UCHAR: (8, False), TypeKind.CHAR_S: (8, True),
    TypeKind.SCHAR: (8, True), TypeKind.USHORT: (16, False), TypeKind.SHORT: (16, True), TypeKind.UINT: (32, False),
    TypeKind.INT: (32, True), TypeKind.ULONG: (64, False), TypeKind.LONG: (64, True),
    TypeKind.ULONGLONG: (64, False), TypeKind.LONGLONG: (64, True),
}  # fmt: skip
WRAPPERS = (
    CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR, CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
)  # fmt: skip
MOST_NODES = 1_500_000
# what libclang 18 exports and its Python side does not declare
_lib: Any = cindex.conf.lib
for _name, _takes, _gives in (
    ("clang_getCursorBinaryOperatorKind", cindex.Cursor, c_int),
    ("clang_getCursorUnaryOperatorKind", cindex.Cursor, c_int),
    ("clang_Cursor_Evaluate", cindex.Cursor, cindex.c_object_p),
    ("clang_EvalResult_getKind", cindex.c_object_p, c_int),
    ("clang_EvalResult_getAsLongLong", cindex.c_object_p, c_longlong),
    ("clang_EvalResult_getAsDouble", cindex.c_object_p, c_double),
    ("clang_EvalResult_dispose", cindex.c_object_p, None),
):
    getattr(_lib, _name).argtypes, getattr(_lib, _name).restype = [_takes], _gives


class TooLarge(Exception):
    pass


class SyntaxReader:
    """One translation unit's functions, tables and types as nested lists: [kind, place, ...]."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.nodes = 0

    def unit(self, root: ClangCursor) -> list[SyntaxList]:
        found: list[SyntaxList] = []
        for cursor in root.get_children():
            if cursor.location.file is None or cursor.location.file.name not in self.files:
                continue
            if cursor.kind in (CursorKind.LINKAGE_SPEC, CursorKind.NAMESPACE, CursorKind.UNEXPOSED_DECL):
                found += self.unit(cursor)
            elif cursor.kind in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE):
                found.append(self.function(cursor))
            elif cursor.kind == CursorKind.VAR_DECL:
                found.append(self.declaration(cursor))
            elif cursor.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL):
                found.append(self.record(cursor))
        return found

    def place(self, cursor: ClangCursor) -> list[Any]:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise TooLarge
        location = cursor.location
        return [location.file.name if location.file else "", location.line, location.column]

    def bad(self, cursor: ClangCursor, what: str) -> SyntaxList:
        return ["bad", self.place(cursor), what]

    def function(self, cursor: ClangCursor) -> SyntaxList:
        children = list(cursor.get_children())
        parameters = [
            [child.spelling, self.type(child.type), self.place(child)]
            for child in children
            if child.kind == CursorKind.PARM_DECL
        ]
        templates = [
            child.spelling for child in children
            if child.kind in (CursorKind.TEMPLATE_NON_TYPE_PARAMETER, CursorKind.TEMPLATE_TYPE_PARAMETER)
        ]  # fmt: skip
        body = next((child for child in children if child.kind == CursorKind.COMPOUND_STMT), None)
        return [
            "function", self.place(cursor), cursor.spelling, parameters, self.type(cursor.result_type), templates,
            self.statement(body) if body is not None else None,
        ]  # fmt: skip

    def record(self, cursor: ClangCursor) -> SyntaxList:
        children = list(cursor.get_children())
        fields = [[c.spelling, self.type(c.type)] for c in children if c.kind == CursorKind.FIELD_DECL]
        virtual = any(c.kind == CursorKind.CXX_METHOD and c.is_virtual_method() for c in children)
        return ["record", self.place(cursor), cursor.spelling, fields, virtual]

    def type(self, type_: Any) -> SyntaxList:
        canonical = type_.get_canonical()
        kind = canonical.kind
        if kind in INTEGERS:
            return ["int", *INTEGERS[kind]]
        if kind in (TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.HALF, TypeKind.VOID):
            return [{TypeKind.HALF: "half"}.get(kind, kind.name.lower())]
        if kind == TypeKind.CONSTANTARRAY:
            return ["array", canonical.element_count, self.type(canonical.element_type)]
        if kind == TypeKind.INCOMPLETEARRAY:
            return ["array", None, self.type(canonical.element_type)]
        if kind in (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
            return ["pointer" if kind == TypeKind.POINTER else "reference", self.type(canonical.get_pointee())]
        name = canonical.spelling.removeprefix("const ")
        if name == "_Float16":
            return ["half"]
        if name.startswith("hls::stream<"):
            return ["stream", self.type(canonical.get_template_argument_type(0))]
        if name.startswith(("ap_int<", "ap_uint<")) and name[name.index("<") + 1 : -1].isdigit():
            return ["int", int(name[name.index("<") + 1 : -1]), name.startswith("ap_int")]
        if name.startswith(("ap_fixed<", "ap_ufixed<")) and name[name.index("<") + 1 :].split(",")[0].isdigit():
            return ["fixed", int(name[name.index("<") + 1 :].split(",")[0]), name.startswith("ap_fixed")]
        return ["named", name]

    def statement(self, cursor: ClangCursor) -> SyntaxList:
        kind = cursor.kind
        if kind == CursorKind.COMPOUND_STMT:
            last = cursor.extent.end.line
            return ["block", self.place(cursor), last, [self.statement(child) for child in cursor.get_children()]]
        if kind == CursorKind.DECL_STMT:
            parts = [self.declaration(c) for c in cursor.get_children() if c.kind == CursorKind.VAR_DECL]
            return ["group", self.place(cursor), parts]
        if kind == CursorKind.LABEL_STMT:
            return ["label", self.place(cursor), cursor.spelling, self.statement(next(iter(cursor.get_children())))]
        if kind == CursorKind.FOR_STMT:
            parts = list(cursor.get_children())
            if len(parts) != 4:
                return self.bad(cursor, "a for loop that lacks its start, condition or step")
            start, condition, step, body = parts
            return [
                "for", self.place(cursor), self.statement(start), self.expression(condition), self.expression(step),
                self.statement(body), cursor.extent.end.line,
            ]  # fmt: skip
        if kind == CursorKind.IF_STMT:
            parts = list(cursor.get_children())
            return [
                "if", self.place(cursor), self.expression(parts[0]), self.statement(parts[1]),
                self.statement(parts[2]) if len(parts) > 2 else None,
            ]  # fmt: skip
        if kind == CursorKind.RETURN_STMT:
            parts = list(cursor.get_children())
            return ["return", self.place(cursor), self.expression(parts[0]) if parts else None]
        if kind == CursorKind.NULL_STMT:
            return ["group", self.place(cursor), []]
        if kind.is_expression():
            return ["expression", self.place(cursor), self.expression(cursor)]
        return self.bad(cursor, kind.name.lower().removesuffix("_stmt") + " statement")

    def declaration(self, cursor: ClangCursor) -> SyntaxList:
        inits = [child for child in cursor.get_children() if child.kind.is_expression()]
        type_ = self.type(cursor.type)
        if type_[0] == "array":  # the lengths of its dimensions are children too
            inits = [child for child in inits if child.kind == CursorKind.INIT_LIST_EXPR]
        static = cursor.storage_class == cindex.StorageClass.STATIC
        value = None
        if inits and type_[0] not in ("stream",) and not (type_[0] == "array" and type_[-1][0] == "stream"):
            value = self.expression(inits[-1])
        element = cursor.type  # of an array, its words are what is const
        while element.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
            element = element.element_type
        constant = cursor.type.is_const_qualified() or element.is_const_qualified()
        return ["declare", self.place(cursor), cursor.spelling, type_, value, static, constant]

    def expression(self, cursor: ClangCursor) -> SyntaxList:
        kind = cursor.kind
        if kind in WRAPPERS:
            inner = [child for child in cursor.get_children() if child.kind.is_expression()]
            if len(inner) != 1:
                return self.bad(cursor, "a cast of several values")
            return self.cast(cursor, self.expression(inner[0]))
        if kind in (CursorKind.INTEGER_LITERAL, CursorKind.CHARACTER_LITERAL, CursorKind.FLOATING_LITERAL):
            return self.literal(cursor)
        if kind == CursorKind.CXX_BOOL_LITERAL_EXPR:
            return self.literal(cursor)
        if kind == CursorKind.DECL_REF_EXPR:
            return ["name", self.place(cursor), cursor.spelling]
        if kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            left, right = (self.expression(child) for child in cursor.get_children())
            sign = BINARY.get(_lib.clang_getCursorBinaryOperatorKind(cursor), "?")
            return ["binary", self.place(cursor), sign, left, right, self.type(cursor.type)]
        if kind == CursorKind.UNARY_OPERATOR:
            sign = UNARY.get(_lib.clang_getCursorUnaryOperatorKind(cursor), "?")
            return [
                "unary",
                self.place(cursor),
                sign,
                self.expression(next(iter(cursor.get_children()))),
                self.type(cursor.type),
            ]
        if kind == CursorKind.CONDITIONAL_OPERATOR:
            parts = [self.expression(child) for child in cursor.get_children()]
            return ["choice", self.place(cursor), *parts, self.type(cursor.type)]
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            base, index = (self.expression(child) for child in cursor.get_children())
            return ["index", self.place(cursor), base, index]
        if kind == CursorKind.CALL_EXPR:
            return self.call(cursor)
        if kind == CursorKind.MEMBER_REF_EXPR:
            inner = list(cursor.get_children())
            return ["member", self.place(cursor), self.expression(inner[0]) if inner else None, cursor.spelling]
        if kind == CursorKind.INIT_LIST_EXPR:
            return ["list", self.place(cursor), [self.expression(child) for child in cursor.get_children()]]
        if kind == CursorKind.STRING_LITERAL:
            return ["text", self.place(cursor), cursor.spelling]
        return self.bad(cursor, kind.name.lower().replace("_", " "))

    def cast(self, cursor: ClangCursor, inner: SyntaxList) -> SyntaxList:
        target = self.type(cursor.type)
        if target[0] in ("int", "float", "double", "half", "fixed"):
            return ["cast", self.place(cursor), target, inner]
        return inner

    def literal(self, cursor: ClangCursor) -> SyntaxList:
        result = _lib.clang_Cursor_Evaluate(cursor)
        kind = _lib.clang_EvalResult_getKind(result)
        if kind == 1:
            value: int | float = _lib.clang_EvalResult_getAsLongLong(result)
        else:
            value = _lib.clang_EvalResult_getAsDouble(result)
        _lib.clang_EvalResult_dispose(result)
        return ["literal", self.place(cursor), value, self.type(cursor.type)]

    def call(self, cursor: ClangCursor) -> SyntaxList:
        children = list(cursor.get_children())
        called = cursor.spelling
        arguments = list(cursor.get_arguments())
        target = cursor.referenced
        if not called and target is None and len(children) == 1:  # a copy that the compiler leaves out
            return self.cast(cursor, self.expression(children[0]))
        if target is not None and target.kind == CursorKind.CONSTRUCTOR:
            type_ = self.type(cursor.type)
            if len(arguments) == 1:
                return self.cast(cursor, self.expression(arguments[0]))
            return ["construct", self.place(cursor), type_, [self.expression(a) for a in arguments]]
        if target is not None and target.kind == CursorKind.CONVERSION_FUNCTION:
            return self.expression(next(iter(children[0].get_children())))
        if called.startswith("operator"):
            return ["operator", self.place(cursor), called[8:], [self.expression(a) for a in arguments]]
        if children and children[0].kind == CursorKind.MEMBER_REF_EXPR:
            inner = list(children[0].get_children())
            if inner:
                return [
                    "method",
                    self.place(cursor),
                    self.expression(inner[0]),
                    called,
                    [self.expression(a) for a in arguments],
                ]
        values = [self.literal(c) for c in self.template_values(children)]
        return [
            "call",
            self.place(cursor),
            called,
            [self.expression(a) for a in arguments],
            values,
            self.type(cursor.type),
        ]

    def template_values(self, children: list[ClangCursor]) -> list[ClangCursor]:
        """The constants between the angle brackets of a call."""
        callee = children[0] if children else None
        while callee is not None and callee.kind == CursorKind.UNEXPOSED_EXPR:
            callee = next(iter(callee.get_children()), None)
        if callee is None or callee.kind != CursorKind.DECL_REF_EXPR:
            return []
        return [child for child in callee.get_children() if child.kind.is_expression()]


def main() -> None:
    asked = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (asked["memory"], asked["memory"]))
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    sys.setrecursionlimit(4000)
    index = cindex.Index.create()
    unit = index.parse(asked["main"], asked["arguments"], [(path, text) for path, text in asked["texts"].items()])
    diagnostics = [
        [d.location.file.name if d.location.file else "", d.location.line, d.location.column, d.spelling]
        for d in unit.diagnostics
        if d.severity >= cindex.Diagnostic.Error
    ]
    answer: dict[str, Any] = {"errors": diagnostics[:50], "unit": []}
    if not diagnostics:
        try:
            answer["unit"] = SyntaxReader(set(asked["own"])).unit(unit.cursor)
        except (TooLarge, RecursionError):
            answer["errors"] = [[asked["main"], 1, 1, "the source is too large or nested too deeply"]]
    # libclang threads may still hold stdout's buffer when the process ends: write and leave at once
    sys.stdout.write(json.dumps(answer, separators=(",", ":")))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
