"""Statements and declarations while libclang's syntax is read: one statement may become several."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from penstock.compiler.hls_in.parse_loops import as_for, begun_before, has_break, without_jumps
from penstock.compiler.hls_in.parse_methods import MethodReader
from penstock.compiler.hls_in.parse_records import ClangCursor
from penstock.compiler.hls_in.parse_refs import Ref, SyntaxList
from penstock.compiler.hls_in.syntax import names_in, variable_of

cindex: Any = import_module("clang.cindex")
CursorKind: Any = cindex.CursorKind
TypeKind: Any = cindex.TypeKind


class StatementReader(MethodReader):
    """The part of the reader that knows statements."""

    def statement(self, cursor: ClangCursor) -> SyntaxList:
        kind = cursor.kind
        if kind == CursorKind.COMPOUND_STMT:
            return self.block(cursor, list(cursor.get_children()))
        if kind == CursorKind.DECL_STMT:
            variables = [c for c in cursor.get_children() if c.kind == CursorKind.VAR_DECL]
            declared: list[SyntaxList] = []
            for one in variables:
                if self.leaves(one.type) is None:
                    declared.append(self.declaration(one))
                else:
                    self.pending += self.record_declaration(one)
            return ["group", self.place(cursor), declared]
        if kind == CursorKind.SWITCH_STMT:
            return self.switch(cursor)
        if kind == CursorKind.LABEL_STMT:
            return ["label", self.place(cursor), cursor.spelling, self.statement(next(iter(cursor.get_children())))]
        if kind == CursorKind.FOR_STMT:
            return self.counted(cursor)
        if kind in (CursorKind.WHILE_STMT, CursorKind.DO_STMT):
            parts = list(cursor.get_children())
            last = kind == CursorKind.DO_STMT
            condition, body = reversed(parts) if last else parts
            return self.whole_loop(as_for(self.place(cursor), self.expression(condition), self.single(body), last))
        if kind == CursorKind.IF_STMT:
            parts = list(cursor.get_children())
            return [
                "if", self.place(cursor), self.expression(parts[0]), self.single(parts[1]),
                self.single(parts[2]) if len(parts) > 2 else None,
            ]  # fmt: skip
        if kind == CursorKind.RETURN_STMT:
            parts = list(cursor.get_children())
            wanted = self.paths(parts[0].type) if parts else None
            if wanted is not None:
                place, values = self.place(cursor), self.numbers(parts[0], wanted) or {}
                into = Ref("return")
                for path, value in values.items():
                    pair = ["binary", place, "=", into.tree(place, path), value, ["int", 32, True]]
                    self.pending.append(["expression", place, pair])
                return ["return", place, None]
            return ["return", self.place(cursor), self.expression(parts[0]) if parts else None]
        if kind in (CursorKind.CONTINUE_STMT, CursorKind.BREAK_STMT):
            return ["continue" if kind == CursorKind.CONTINUE_STMT else "break", self.place(cursor)]
        if kind == CursorKind.NULL_STMT:
            return ["group", self.place(cursor), []]
        if kind.is_expression() and cursor.type.get_canonical().spelling == "std::ostream":
            return ["group", self.place(cursor), []]  # what a test would print is no hardware
        if kind == CursorKind.CALL_EXPR and cursor.spelling == "swap" and not self.written(cursor.referenced):
            return self.swapped(cursor, list(cursor.get_arguments()))
        if kind.is_expression():
            return ["expression", self.place(cursor), self.expression(cursor)]
        return self.bad(cursor, kind.name.lower().removesuffix("_stmt") + " statement")

    def swapped(self, cursor: ClangCursor, pair: list[ClangCursor]) -> SyntaxList:
        """std::swap: one number kept, the other put in its place."""
        if len(pair) != 2 or self.leaves(pair[0].type) is not None:
            return self.bad(cursor, "swap of what are no numbers")
        place, name, type_ = self.place(cursor), self.fresh_name(), self.type(pair[0].type)
        one, other = map(self.expression, pair)
        self.pending.append(["group", place, [["declare", place, name, type_, one, False, False]]])
        number = ["int", 32, True]
        moved = ["binary", place, "=", one, other, number]
        kept = ["binary", place, "=", other, ["name", place, name], number]
        return ["expression", place, ["binary", place, ",", moved, kept, number]]

    def whole_loop(self, made: tuple[SyntaxList, list[SyntaxList]]) -> SyntaxList:
        """A loop behind what has to stand before it."""
        loop, before = made
        self.pending += before
        return loop

    def counted(self, cursor: ClangCursor) -> SyntaxList:
        """A `for`, with what its head leaves out."""
        place, parts, said = self.place(cursor), list(cursor.get_children()), _parts_of_head(cursor)
        if len(parts) != sum(said) + 1:
            return self.bad(cursor, "for loop whose head a macro writes")
        body = self.single(parts.pop())
        if body[0] != "block":  # its pragmas stand between the head and the only statement
            body = ["block", [place[0], place[1], place[2] + 1], cursor.extent.end.line, [body]]
        start, condition, step = (parts.pop(0) if there else None for there in said)
        asked = self.expression(condition) if condition is not None else None
        moved = self.expression(step) if step is not None else None
        if asked is None or moved is None:
            if start is not None:
                self.pending.append(self.statement(start))
            if moved is not None:
                body = ["block", body[1], body[2], [*body[3], ["expression", moved[1], moved]]]
            return self.whole_loop(as_for(place, asked, body))
        begun = self.loop_start(start, asked) if start is not None else begun_before(place, moved)
        own, others = _own_step(moved, variable_of(["for", None, begun]))
        inside, before = without_jumps(body)
        if others:
            more = [["expression", part[1], part] for part in others]
            end, first = (inside[2], inside[3]) if inside[0] == "block" else (cursor.extent.end.line, [inside])
            inside = ["block", inside[1], end, [*first, *more]]
        return self.whole_loop((["for", place, begun, asked, own, inside, cursor.extent.end.line], before))

    def block(self, cursor: ClangCursor, children: list[ClangCursor]) -> SyntaxList:
        around, self.pending = self.pending, []
        found: list[SyntaxList] = []
        for child in children:
            statement = self.statement(child)
            found += [*self.pending, statement]
            self.pending = []
        self.pending = around
        return ["block", self.place(cursor), cursor.extent.end.line, found]

    def single(self, cursor: ClangCursor) -> SyntaxList:
        """A statement that may need others before it, where one alone may stand."""
        around, self.pending = self.pending, []
        statement = self.statement(cursor)
        if self.pending:
            statement = ["block", self.place(cursor), cursor.extent.end.line, [*self.pending, statement]]
        self.pending = around
        return statement

    def loop_start(self, start: ClangCursor, condition: SyntaxList) -> SyntaxList:
        """Of several variables that a loop's head sets, the one that its condition looks at; the others before it."""
        place, read = self.place(start), self.statement(start)
        looked_at = set(names_in(condition))
        if read[0] == "group" and len(read[2]) > 1:
            own = [part for part in read[2] if part[2] in looked_at]
            if len(own) == 1:
                self.pending += [["group", place, [part]] for part in read[2] if part is not own[0]]
                return ["group", place, own]
        elif read[0] == "expression" and read[2][0] == "binary" and read[2][2] == ",":
            parts = list(unchained(read[2]))
            own = [part for part in parts if part[0] == "binary" and set(names_in(part[3])) & looked_at]
            if len(own) == 1:
                self.pending += [["expression", place, part] for part in parts if part is not own[0]]
                return ["expression", place, own[0]]
        return read

    def switch(self, cursor: ClangCursor) -> SyntaxList:
        """A switch whose cases end in a break or return, as conditions."""
        place = self.place(cursor)
        chosen, body = list(cursor.get_children())
        if body.kind != CursorKind.COMPOUND_STMT:
            return self.bad(cursor, "switch statement")
        cases: list[tuple[list[SyntaxList], bool, list[ClangCursor]]] = []
        for child in body.get_children():
            labels: list[SyntaxList] = []
            default = False
            fresh = child.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT)
            while child.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
                inner = list(child.get_children())
                default |= child.kind == CursorKind.DEFAULT_STMT
                labels += [self.expression(inner[0])] if child.kind == CursorKind.CASE_STMT else []
                child = inner[-1]
            if fresh:
                cases.append((labels, default, [child]))
            elif cases:
                cases[-1][2].append(child)
        ends = (CursorKind.BREAK_STMT, CursorKind.RETURN_STMT)
        if any(not part[2] or part[2][-1].kind not in ends for part in cases[:-1]):
            return self.bad(cursor, "switch statement with a case that falls through")
        found: SyntaxList | None = None
        for labels, default, statements in sorted(cases, key=lambda case: not case[1]):
            inside = self.block(cursor, [s for s in statements if s.kind != CursorKind.BREAK_STMT])
            if has_break(inside):
                return self.bad(cursor, "switch statement with a break under a condition")
            if default:
                found = inside
                continue
            equal: SyntaxList | None = None
            for label in labels:
                one = ["binary", place, "==", self.expression(chosen), label, ["int", 1, False]]
                equal = one if equal is None else ["binary", place, "||", equal, one, ["int", 1, False]]
            found = ["if", place, equal, inside, found]
        return found if found is not None else ["group", place, []]

    def declarations(self, cursor: ClangCursor) -> list[SyntaxList]:
        """A variable outside of functions; a struct is its fields."""
        if self.leaves(cursor.type) is None:
            return [self.declaration(cursor)]
        return [part for one in self.record_declaration(cursor) if one[0] == "group" for part in one[2]]

    def record_declaration(self, cursor: ClangCursor) -> list[SyntaxList]:
        inits = [child for child in cursor.get_children() if child.kind.is_expression()]
        if cursor.type.get_canonical().kind == TypeKind.CONSTANTARRAY:
            inits = [child for child in map(_listed, inits) if child.kind == CursorKind.INIT_LIST_EXPR]
        static = cursor.storage_class == cindex.StorageClass.STATIC
        return self.declared(cursor, cursor.spelling, cursor.type, inits, static, cursor.type.is_const_qualified())

    def declaration(self, cursor: ClangCursor) -> SyntaxList:
        inits = [child for child in cursor.get_children() if child.kind.is_expression()]
        type_ = self.type(cursor.type)
        if type_[0] == "array" and (blocks := _blocks(cursor.type)):
            return ["declare", self.place(cursor), cursor.spelling, ["blocks", blocks, type_], None, False, False]
        if type_[0] == "reference" and cursor.type.spelling.startswith(("hls::write_lock<", "hls::read_lock<")):
            type_ = [*type_, "lock"]
        if type_[0] == "array":  # the lengths of its dimensions are children too
            inits = [child for child in map(_listed, inits) if child.kind == CursorKind.INIT_LIST_EXPR]
        static = cursor.storage_class == cindex.StorageClass.STATIC
        value = None
        if inits and type_[0] not in ("stream",) and not (type_[0] == "array" and type_[-1][0] == "stream"):
            value = self.expression(inits[-1])
        element = cursor.type  # of an array, its words are what is const
        while element.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
            element = element.element_type
        constant = cursor.type.is_const_qualified() or element.is_const_qualified()
        return ["declare", self.place(cursor), cursor.spelling, type_, value, static, constant]


def _listed(cursor: ClangCursor) -> ClangCursor:
    """A list of first values, which the compiler wraps where its words have constructors."""
    while cursor.kind == CursorKind.UNEXPOSED_EXPR:
        inner = [child for child in cursor.get_children() if child.kind.is_expression()]
        if len(inner) != 1:
            break
        cursor = inner[0]
    return cursor


def _blocks(type_: Any) -> int:
    """How many blocks an hls::stream_of_blocks holds; 0 for every other type. Our header makes an array of it."""
    written = type_.spelling.replace(" ", "")
    if not written.startswith("hls::stream_of_blocks<"):
        return 0
    depth = written.rstrip(">").rpartition(",")[2]
    return int(depth) if depth.isdigit() else 2


def _parts_of_head(cursor: ClangCursor) -> list[bool]:
    """Whether a for loop's head has a start, a condition and a step."""
    found, deep = [False], 0
    for token in cursor.get_tokens():
        text = token.spelling
        deep += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if deep == 0 and text != "for":
            break
        if deep == 1 and text == ";":
            found.append(False)
        elif text != "for" and (deep, text) != (1, "("):
            found[-1] = True
    return found if len(found) == 3 else [True, True, True]


def _own_step(step: SyntaxList, variable: str) -> tuple[SyntaxList, list[SyntaxList]]:
    """What moves a loop's variable, and what else its head does after each iteration."""
    parts = list(unchained(step))
    own = [part for part in parts if next(names_in(part), "") == variable]
    return (own[0], [part for part in parts if part is not own[0]]) if len(own) == 1 else (step, [])


def unchained(tree: SyntaxList) -> Iterator[SyntaxList]:
    """The expressions between commas."""
    if tree[0] == "binary" and tree[2] == ",":
        yield from unchained(tree[3])
        yield from unchained(tree[4])
    else:
        yield tree
