"""The memories of an accelerator as C++ arguments and as what a host reads in interface.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from penstock.compiler.backend.hls.names_cpp import cpp_names
from penstock.compiler.backend.hls.scalar_cpp import cpp_type
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.directives import AxiAttr, BanksAttr, interfaces_of, word_of
from penstock.compiler.dialects.types import memref_type
from penstock.compiler.layout import Layout
from penstock.compiler.plan.names import striped_tensor
from penstock.compiler.scalars.number_types import NumberType, number_type

BorderShapes = tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]]
"""The shapes of inputs and of outputs, without padding."""


@dataclass(frozen=True)
class TopPort:
    """One memory of the top, as the C++ and interface.json name it.

    `kind` is input, parameter or output for the host's, buffer for a tensor that passes between two kernels.
    `index` is the place among all of that kind that the model has: one that nobody reads has no port.
    `shape` is the tensor's own, `packed_shape` that of the array that crosses the C interface.
    """

    value: SSAValue
    name: str
    kind: str
    scalar: str
    number: NumberType
    lanes: int
    shape: tuple[int, ...]
    packed_shape: tuple[int, ...]
    layout: Layout | None
    argument: str
    interface: AxiAttr | BanksAttr
    reads: bool
    writes: bool
    index: int
    feeds: str | None = None
    """Of an output that the next call of a list reads: the argument whose memory it shares."""
    is_calls: bool = False
    """Whether the list of calls lies there. It is among the parameters: without another list there is one call."""
    is_lengths: bool = False
    """Whether a call's lengths lie there, in steps. It is the last of the inputs, and none of the model's."""

    @property
    def axi(self) -> AxiAttr:
        assert isinstance(self.interface, AxiAttr), "an array on the chip has no bus"
        return self.interface

    @property
    def banks(self) -> BanksAttr | None:
        """How an array on the chip is cut; None for external memory."""
        return self.interface if isinstance(self.interface, BanksAttr) else None

    @property
    def declaration(self) -> str:
        """The C++ argument: a pointer into external memory, or an array."""
        if self.banks is None:
            return f"{self.qualifier}{self.word} *{self.argument}"
        return f"{self.qualifier}{self.word} {self.argument}" + "".join(f"[{n}]" for n in self.packed_shape)

    @property
    def pointer(self) -> str:
        """What the C++ argument is to its caller."""
        rows = "".join(f"[{n}]" for n in self.packed_shape[1:]) if self.banks is not None else ""
        return f"{self.qualifier}{self.word} (*){rows}" if rows else f"{self.qualifier}{self.word} *"

    @property
    def tensor(self) -> str:
        """The model's name of what lies there, whole or a bank's share of it."""
        return striped_tensor(self.name) if self.layout is not None and self.layout.stripe is not None else self.name

    @property
    def dtype(self) -> str:
        """What interface.json says of the host's array."""
        return self.number.dtype.name

    @property
    def elements(self) -> int:
        return prod(self.packed_shape)

    @property
    def words(self) -> int:
        return self.elements // self.lanes

    @property
    def word(self) -> str:
        """The C++ type that the argument points to."""
        return self.scalar if self.lanes == 1 else f"hls::vector<{self.scalar}, {self.lanes}>"

    @property
    def host(self) -> str:
        """The C++ type of the host's scalars."""
        return self.number.host_cpp

    @property
    def is_native(self) -> bool:
        """Whether the host's array is already one of words."""
        return self.lanes == 1 and self.scalar == self.host

    @property
    def scalar_bits(self) -> int:
        return self.number.dtype.itemsize * 8

    @property
    def qualifier(self) -> str:
        return "" if self.writes or self.kind in ("output", "buffer") else "const "

    def describe(self) -> str:
        """For people: what the argument is, in one line."""
        layout = self.layout
        where = f", tiles of {_times(layout.tile)} in words of {_times(layout.word)}" if layout else ""
        if layout is not None and layout.stripe is not None:
            where += f", share {layout.stripe} of {layout.stripes}"
        if layout is not None and layout.room:
            where += f", each with room for {layout.room}"
        if self.is_calls:
            return f"how many calls to run, and for each the first word of every input and output: {_times(self.shape)}"
        if self.is_lengths:
            return f"the lengths of this call, in steps: {_times(self.shape)}"
        return f"{self.kind} {self.name}: {_times(self.shape)} x {self.dtype}{where}"


def ports_of(top: stream.TopOp) -> tuple[TopPort, ...]:
    """The memories of the top in the order of its arguments: the host's, and tensors between kernels.

    An argument that nobody uses is none of them: it would be a port of the hardware, on a bank, for nothing.
    """
    ports: list[TopPort] = []
    met: Counter[str] = Counter()
    names = cpp_names(top).values
    described = zip(top.argument_names, top.body.block.args, strict=True)
    called = {name.data: names[value] for name, value in described if value in names}
    fed = {made: called[given] for made, given in top.fed.items()}
    arguments = zip(top.body.block.args, top.argument_names, top.argument_kinds, interfaces_of(top), strict=True)
    for index, (value, name, kind, interface) in enumerate(arguments):
        memory, layout = memref_type(value), top.layout(index)
        is_calls = value is top.calls
        side = "parameter" if is_calls else "input" if value is top.steps else kind.data
        met[side] += not (layout and layout.stripe)  # the shares of all banks are one tensor
        if value.first_use is None and value not in (top.calls, top.steps):
            continue
        element, lanes = memory.element_type, tuple[int, ...]()
        if (word := word_of(memory)) is not None:
            lanes, element = tuple(word.get_shape()), word.element_type
        packed = (*memory.get_shape(), *lanes)
        uses = [use.operation for use in value.uses]
        port = TopPort(
            value, name.data, side, cpp_type(element), number_type(element), prod(lanes),
            _logical_shape(packed, layout), packed, layout,
            names[value], interface,
            is_calls or value is top.steps or any(isinstance(op, nest.LoadOp) for op in uses),
            any(isinstance(op, nest.StoreOp) for op in uses),
            met[side] - 1, fed.get(name.data), is_calls, value is top.steps,
        )  # fmt: skip
        ports.append(port)
    return tuple(ports)


def _logical_shape(packed: tuple[int, ...], layout: Layout | None) -> tuple[int, ...]:
    """[n/t ...] + [t/w ...] + [w ...] back to [n ...]."""
    if layout is None:
        return packed
    return tuple(trips * tile for trips, tile in zip(packed, layout.tile, strict=False))


def interface_of(top: stream.TopOp, ports: Sequence[TopPort], valid: BorderShapes | None = None) -> dict[str, Any]:
    """What a host needs to call the top: order, shapes, layouts and dtypes of its memories.

    `argument` and `position` are the C++ argument's, `index` says which of the model's inputs or outputs it is.
    `valid` is how much of a padded tensor the model knows; the host puts zeros behind it, or cuts off what is there.
    """

    def describe(port: TopPort) -> dict[str, Any]:
        layout: dict[str, Any] | None = None
        if port.layout:
            layout = {"tile": list(port.layout.tile), "word": list(port.layout.word)}
            if port.layout.stripe is not None:
                layout |= {"stripes": port.layout.stripes, "stripe": port.layout.stripe}
            if port.layout.room:
                layout |= {"room": port.layout.room}
        entry: dict[str, Any] = {
            "name": port.tensor, "argument": port.argument, "position": positions[port.value], "index": port.index,
            "shape": list(port.shape), "dtype": port.dtype,
            "layout": layout, "packed_shape": list(port.packed_shape),
            "bundle": f"gmem{port.axi.bundle.data}" if port.banks is None else None,
        }  # fmt: skip
        if valid is not None and port.kind in ("input", "output") and not port.is_lengths:
            shape = valid[port.kind == "output"][port.index]
            entry |= {"valid": list(shape)} if shape != port.shape else {}
        return {**entry, "file": f"parameters/{port.argument}.bin"} if port.kind == "parameter" else entry

    positions = {port.value: position for position, port in enumerate(ports)}
    sides = {"inputs": "input", "parameters": "parameter", "outputs": "output"}
    sorted_ports = {side: [describe(p) for p in ports if p.kind == kind] for side, kind in sides.items()}
    buffers = [describe(p) for p in ports if p.kind == "buffer"]
    calls = [
        {"argument": p.argument, "moved": [o.argument for o in moved_ports(ports)],
         "feeds": {o.argument: o.feeds for o in ports if o.feeds is not None}}
        for p in ports if p.is_calls
    ]  # fmt: skip
    return {
        "top": top.sym_name.data, **sorted_ports, **({"buffers": buffers} if buffers else {}),
        **({"calls": calls[0]} if calls else {}), **_lengths_json(top, ports),
    }  # fmt: skip


def _lengths_json(top: stream.TopOp, ports: Sequence[TopPort]) -> dict[str, Any]:
    """Which memory says a call's lengths, and what they may be."""
    argument = next((port.argument for port in ports if port.is_lengths), None)
    if argument is None or top.lengths is None:
        return {}
    return {"lengths": {"argument": argument, "of": [asdict(length) for length in top.lengths.data]}}


def moved_ports(ports: Sequence[TopPort]) -> list[TopPort]:
    """The memories whose beginnings a list of calls says, in its order."""
    return [port for port in ports if port.kind in ("input", "output") and not port.is_lengths]


def _times(shape: Sequence[int]) -> str:
    return " x ".join(str(n) for n in shape) or "scalar"
