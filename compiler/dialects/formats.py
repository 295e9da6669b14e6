"""How whole numbers, maps and equal types stand in the assembly format, where xDSL would spell them out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntAttr
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer


class _Shorter(CustomDirective, ABC):
    """An attribute without the words that are the same each time."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, self.parse_value(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        found = self.value.get(op)
        assert found is not None
        self.print_value(printer, found)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.value.is_present(op)

    def is_anchorable(self) -> bool:
        return self.value.is_anchorable()

    @abstractmethod
    def parse_value(self, parser: Parser) -> Attribute: ...

    @abstractmethod
    def print_value(self, printer: Printer, value: Attribute) -> None: ...


@irdl_custom_directive
class NumberFormat(_Shorter):
    """A whole number: `3`."""

    value: AttributeVariable

    def parse_value(self, parser: Parser) -> Attribute:
        return IntAttr(parser.parse_integer())

    def print_value(self, printer: Printer, value: Attribute) -> None:
        printer.print_string(str(cast(IntAttr, value).data))


@irdl_custom_directive
class MapFormat(_Shorter):
    """An affine map: `(d0, d1) -> (d1, 0)`."""

    value: AttributeVariable

    def parse_value(self, parser: Parser) -> Attribute:
        return AffineMapAttr(parser.parse_affine_map())

    def print_value(self, printer: Printer, value: Attribute) -> None:
        printer.print_string(str(cast(AffineMapAttr, value).data))


class _List(_Shorter, ABC):
    """Several of a kind in square brackets."""

    def parse_value(self, parser: Parser) -> Attribute:
        return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: self.parse_one(parser)))

    def print_value(self, printer: Printer, value: Attribute) -> None:
        texts = [self.text_of(one) for one in cast("ArrayAttr[Attribute]", value)]
        printer.print_string(f"[{', '.join(texts)}]")

    @abstractmethod
    def parse_one(self, parser: Parser) -> Attribute: ...

    @abstractmethod
    def text_of(self, one: Attribute) -> str: ...


@irdl_custom_directive
class NumbersFormat(_List):
    """Whole numbers: `[2, 6, 4]`."""

    value: AttributeVariable

    def parse_one(self, parser: Parser) -> Attribute:
        return IntAttr(parser.parse_integer())

    def text_of(self, one: Attribute) -> str:
        return str(cast(IntAttr, one).data)


@irdl_custom_directive
class Maps(_List):
    """Affine maps: `[(d0, d1) -> (d0), (d0, d1) -> (d1)]`."""

    value: AttributeVariable

    def parse_one(self, parser: Parser) -> Attribute:
        return AffineMapAttr(parser.parse_affine_map())

    def text_of(self, one: Attribute) -> str:
        return str(cast(AffineMapAttr, one).data)


@irdl_custom_directive
class Iterators(_List):
    """What the dims of an operation do: `[parallel, reduction]`."""

    value: AttributeVariable

    def parse_one(self, parser: Parser) -> Attribute:
        return IteratorTypeAttr(parser.parse_str_enum(IteratorType))

    def text_of(self, one: Attribute) -> str:
        return str(cast(IteratorTypeAttr, one).data)


@irdl_custom_directive
class OneType(CustomDirective):
    """The type that two operands and the result share."""

    first: TypeDirective
    second: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        kind = parser.parse_type()
        for one in (self.first, self.second, self.result):
            one.set(state, (kind,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_attribute(self.first.get(op)[0])
