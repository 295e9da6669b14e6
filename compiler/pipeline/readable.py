"""A module as text for people: values bear the names of layers, types and maps that repeat get a name at the top.

What comes out is MLIR all the same, which the parser reads back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from io import StringIO

from xdsl.dialects.builtin import AffineMapAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.printer import Printer

from penstock.compiler.analysis.converter import ConverterPlan
from penstock.compiler.analysis.converting import COUNTABLE, choose_plan, converted_orders
from penstock.compiler.analysis.one_pass import OnePassPlan
from penstock.compiler.analysis.regroup import RegroupPlan
from penstock.compiler.dialects import itensor
from penstock.compiler.names import c_name, hint_of

_SHORT = 24
"""Text of so many characters is as easily read as looked up."""


def readable(module: ModuleOp) -> str:
    """The module's text, with its names for types and maps in front."""
    module = module.clone()
    for op in module.walk():
        _name_values(op)
    found = _Counting()
    found.print_op(module)
    texts = {attribute: str(attribute) for attribute, count in found.counts.items() if count > 1}
    long = [attribute for attribute, text in texts.items() if len(text) > _SHORT]
    names: dict[Attribute, str] = {}
    numbers: Counter[str] = Counter()
    for attribute in long:
        base = _base(attribute)
        names[attribute] = f"{base}{numbers[base]}"
        numbers[base] += 1
    head = [f"{name} = {texts[attribute]}" for attribute, name in names.items()]
    body = _Naming(names)
    body.print_op(module)
    return "\n".join([*head, body.text()]) + "\n"


def _name_values(op: Operation) -> None:
    """Arguments of the function are called as in the model, results as the layer or task that they come from."""
    if isinstance(op, FuncOp):
        for value, described in zip(op.body.block.args, op.arg_attrs or (), strict=False):
            _name(value, described.data.get("penstock.name"))
        return
    label = op.attributes.get("penstock.layer") or op.properties.get("sym_name")
    for result in op.results:
        _name(result, label)
    if isinstance(op, itensor.KernelOp):
        for outer, inner in zip(op.sources, op.body.block.args, strict=True):
            inner.name_hint = outer.name_hint


def _name(value: SSAValue, label: Attribute | None) -> None:
    if isinstance(label, StringAttr):
        value.name_hint = hint_of(c_name(label.data))


def _base(attribute: Attribute) -> str:
    if isinstance(attribute, AffineMapAttr):
        return "#map"
    return ("!" if isinstance(attribute, TypeAttribute) else "#") + attribute.name.rpartition(".")[2]


def _may_be_named(attribute: Attribute) -> bool:
    return isinstance(attribute, AffineMapAttr) or (isinstance(attribute, TypeAttribute) and "." in attribute.name)


class _Counting(Printer):
    """Prints to nowhere and counts what could have a name, in the order of its first use."""

    def __init__(self) -> None:
        super().__init__(stream=StringIO())
        self.counts: Counter[Attribute] = Counter()

    def print_attribute(self, attribute: Attribute) -> None:
        if _may_be_named(attribute):
            self.counts[attribute] += 1
        super().print_attribute(attribute)


class _Naming(Printer):
    def __init__(self, names: dict[Attribute, str]) -> None:
        self.out = StringIO()
        super().__init__(stream=self.out)
        self.names = names

    def text(self) -> str:
        return self.out.getvalue()

    def print_op(self, op: Operation) -> None:
        super().print_op(op)
        if (kinds := converted_orders(op)) is not None:
            self.print_string(f"  // {_buffer(choose_plan(*kinds))}")

    def print_attribute(self, attribute: Attribute) -> None:
        if attribute in self.names:
            self.print_string(self.names[attribute])
        else:
            super().print_attribute(attribute)


def _buffer(plan: OnePassPlan | RegroupPlan | ConverterPlan) -> str:
    """What the converter keeps, and the least that any converter between these orders would have to."""
    if isinstance(plan, OnePassPlan):
        return f"one nest that keeps {_times(plan.memory)} elements"
    if isinstance(plan, RegroupPlan):
        return f"one nest that keeps {plan.depth} times {_times(plan.line)} elements"
    alive = f"; {plan.live_max} elements alive at most" if plan.block_elements <= COUNTABLE else ""
    loops = f"{len(plan.shared)} shared loop{'' if len(plan.shared) == 1 else 's'}"
    return f"two blocks of {_times(plan.block)}, {loops}{alive}"


def _times(shape: Sequence[int]) -> str:
    return " x ".join(str(n) for n in shape) or "1"
