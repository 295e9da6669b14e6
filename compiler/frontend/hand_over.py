"""From MLIR's own objects to xDSL's, operation by operation.

Printing a module and parsing it again gives the same, several times slower: a text repeats a type or a map with each
of its uses, and here each is parsed once.
"""

# torch-mlir's Python bindings come without types
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch_mlir.ir import DenseFPElementsAttr
from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.utils.hints import isa

from penstock.compiler.frontend.origin import numbers_in

ORIGIN = "penstock.origin"
_HEX = re.compile(r"(?<!\")\b0x[0-9A-F]+\b.*f(16|32|64)>$")
"""A float by its bits; what stands in quotes are the bytes of a whole tensor, which xDSL reads as they are."""


def hand_over(module: Any, context: Context) -> ModuleOp:
    """The module in xDSL. What stands in a function carries the number of the graph node that it comes from."""
    result = _Reader(context).operation(module.operation)
    assert isinstance(result, ModuleOp)
    for number, argument in enumerate(_arguments(result)):
        argument.name_hint = f"arg{number}"
    return result


@dataclass
class _Reader:
    context: Context
    values: dict[Any, SSAValue] = field(default_factory=dict[Any, SSAValue])
    known: dict[str, Attribute] = field(default_factory=dict[str, Attribute])

    def operation(self, source: Any, parent: Any = None) -> Operation:
        kind = self.context.get_op(source.name)
        declared = kind.get_irdl_definition().properties if issubclass(kind, IRDLOperation) else {}
        attributes = {name: self._attribute(value) for name, value in source.attributes.items()}
        properties = {name: attributes.pop(name) for name in declared if name in attributes}
        if parent is not None and parent.name == FuncOp.name:
            numbers = numbers_in(str(source.location))  # a location does not survive, an attribute does
            if numbers:
                attributes[ORIGIN] = IntegerAttr(numbers[-1], i64)
        op = kind.create(
            operands=[self.values[operand] for operand in source.operands],
            result_types=[self._attribute(result.type) for result in source.results],
            properties=properties,
            attributes=attributes,
            regions=[self._region(region, source) for region in source.regions],
        )
        self.values.update(zip(source.results, op.results, strict=True))
        return op

    def _region(self, source: Any, parent: Any) -> Region:
        region = Region()
        for given in source.blocks:
            block = Block(arg_types=[self._attribute(argument.type) for argument in given.arguments])
            region.add_block(block)
            self.values.update(zip(given.arguments, block.args, strict=True))
            for op in given.operations:
                block.add_op(self.operation(op.operation, parent))
        return region

    def _attribute(self, source: Any) -> Attribute:
        text = str(source)
        if text not in self.known:
            infinite = text.startswith("dense<") and _HEX.search(text)
            self.known[text] = self._numbers(source) if infinite else Parser(self.context, text).parse_attribute()
        return self.known[text]

    def _numbers(self, source: Any) -> Attribute:
        """Infinities stand in MLIR's text as their bits, which xDSL would read as a whole number."""
        kind = self._attribute(source.type)
        assert isa(kind, TensorType[AnyFloat])
        return DenseIntOrFPElementsAttr.from_list(kind, [float(x) for x in DenseFPElementsAttr(source)])


def _arguments(op: Operation) -> Iterator[BlockArgument]:
    """The arguments of all blocks in the order in which MLIR numbers them: the last operation's first."""
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
            for inner in reversed(list(block.ops)):
                yield from _arguments(inner)
