"""Calls of integers of any width while libclang's syntax is read: shifts, bits, ranges, one beside the other."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.compiler.hls_in.parse_records import ClangCursor
from penstock.compiler.hls_in.parse_refs import SyntaxList
from penstock.compiler.hls_in.parse_statements import StatementReader

_INT: SyntaxList = ["int", 32, True]
_BOOL: SyntaxList = ["int", 1, False]
_NUMBERS = (
    "to_bool", "to_short", "to_int", "to_uint", "to_long", "to_ulong", "to_int64", "to_uint64", "to_float", "to_double",
)  # fmt: skip
CursorKind: Any = import_module("clang.cindex").CursorKind


class IntegerReader(StatementReader):
    """The part of the reader that knows ap_int and ap_uint. What is not here they compute as C++ does."""

    def of_integer(
        self, cursor: ClangCursor, called: str, arguments: list[ClangCursor], children: list[ClangCursor]
    ) -> SyntaxList | None:
        """A call that has to do with an integer of any width: its shifts, ~, its bits; None for every other one."""
        operator = called.startswith("operator")
        owner = arguments[0] if operator and arguments else None
        if not operator and children and children[0].kind == CursorKind.MEMBER_REF_EXPR:
            owner = next(iter(children[0].get_children()), None)
        if owner is None or not _of_any_width(owner.type, called):
            return None
        place, type_ = self.place(cursor), self.type(cursor.type)
        value = self.expression(owner)
        given = [self.expression(a) for a in (arguments[1:] if operator else arguments)]
        sign = called[8:] if operator else called
        if sign == "~" and not given:
            return ["unary", place, "~", value, type_]
        if operator and sign in ("++", "--") and len(given) <= 1:  # what comes after has an argument that says so
            return ["unary", place, f"p{sign}" if given else sign, value, self.type(owner.type)]
        if operator and _assigns(sign) and len(given) == 1 and self.type(owner.type)[1] == 1:
            new = given[0] if sign == "=" else ["binary", place, sign[:-1], value, given[0], _INT]
            return ["operator", place, "=", [value, lowest_bit(place, new)]]
        if sign == "," and len(given) == 1:
            return self.side_by_side(place, arguments, [value, given[0]], type_)
        if sign in ("<<", ">>") and len(given) == 1:
            return ["binary", place, sign, value, given[0], type_]
        if sign in ("[]", "get_bit", "test") and len(given) == 1:
            return ["bits", place, value, given[0], given[0]]
        if sign in ("()", "range") and len(given) == 2:
            return ["bits", place, value, *given]
        if sign == "set_bit" and len(given) == 2:
            bit = ["bits", place, value, given[0], given[0]]
            return ["binary", place, "=", bit, given[1], ["int", 1, False]]
        if sign in _NUMBERS and not given:
            return ["cast", place, type_, value]
        if sign in ("set", "clear", "invert") and len(given) == 1:
            bit = ["bits", place, value, given[0], given[0]]
            to = ["literal", place, int(sign == "set"), _BOOL]
            if sign == "invert":
                to = ["unary", place, "!", bit, _BOOL]
            return ["binary", place, "=", bit, to, _BOOL]
        if not operator and not given and (found := self._of_all_bits(place, sign, value, owner)) is not None:
            return found
        return ["literal", place, self.type(owner.type)[1], type_] if sign == "length" else None

    def _of_all_bits(
        self, place: list[Any], called: str, value: SyntaxList, owner: ClangCursor
    ) -> SyntaxList | None:  # fmt: skip
        """What is asked of all bits of a number, or done to them."""
        _, wide, signed = self.type(owner.type)
        zero = ["literal", place, 0, _INT]
        if called in ("or_reduce", "iszero"):
            return ["binary", place, "!=" if called == "or_reduce" else "==", value, zero, _BOOL]
        if called == "sign":
            return ["binary", place, "<", value, zero, _BOOL] if signed else ["literal", place, 0, _BOOL]
        if called == "and_reduce":
            ones = ["literal", place, -1 if signed else (1 << wide) - 1, ["int", wide, signed]]
            return ["binary", place, "==", value, ones, _BOOL]
        if called not in ("xor_reduce", "reverse"):
            return None
        whole: SyntaxList = ["int", wide, False]
        found: SyntaxList | None = None
        for at in range(wide):
            number = ["literal", place, at, _INT]
            bit: SyntaxList = ["cast", place, whole, ["bits", place, value, number, number]]
            if called == "reverse":
                bit = ["binary", place, "<<", bit, ["literal", place, wide - 1 - at, _INT], whole]
            found = bit if found is None else ["binary", place, "|" if called == "reverse" else "^", found, bit, whole]
        return ["binary", place, "=", value, found, whole] if called == "reverse" else found

    def side_by_side(
        self, place: list[Any], arguments: list[ClangCursor], values: list[SyntaxList], type_: SyntaxList
    ) -> SyntaxList:
        """(upper, lower): the bits of one number before those of another."""
        widths = [["int", self.type(argument.type)[1], False] for argument in arguments]
        upper, lower = (["cast", place, width, value] for width, value in zip(widths, values, strict=True))
        by = ["literal", place, widths[1][1], ["int", 32, True]]
        return ["binary", place, "|", ["binary", place, "<<", ["cast", place, type_, upper], by, type_], lower, type_]


def _assigns(sign: str) -> bool:
    return sign == "=" or (sign.endswith("=") and sign[0] in "+-*/%&|^<>" and sign not in ("<=", ">="))


def lowest_bit(place: list[Any], value: SyntaxList) -> SyntaxList:
    """What one bit keeps of a number: it is no question whether that is zero, as of a bool."""
    return ["binary", place, "&", value, ["literal", place, 1, _INT], _INT]


def is_one_bit(type_: Any) -> bool:
    return type_.get_canonical().spelling.removeprefix("const ") in ("ap_uint<1>", "ap_int<1>")


def _of_any_width(type_: Any, called: str) -> bool:
    name = type_.get_canonical().spelling.removeprefix("const ")
    fixed = name.startswith(("ap_fixed<", "ap_ufixed<")) and called.startswith("to_")
    return fixed or name.startswith(("ap_int<", "ap_uint<")) or name == "ap_bits"
