"""The stream dialect: hardware channels and memories between tasks, once layouts have become types' history.

FIFOs carry vector tokens; a block channel hands whole buffers from a writer to a reader (ping-pong).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, MemRefType, StringAttr, UnitAttr, VectorType
from xdsl.ir import Attribute, BlockArgument, Dialect, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from penstock.compiler.dialects.counts import LengthsAttr
from penstock.compiler.dialects.formats import NumberFormat
from penstock.compiler.dialects.itensor_types import LayoutAttr
from penstock.compiler.layout import Layout

CALLS, LENGTHS = "calls", "lengths"
ARGUMENT_KINDS = ("input", "parameter", "output", "buffer", LENGTHS, CALLS)
ON_CHIP = StringAttr("on_chip")
"""The memory space of an argument that is an array on the chip; others are external memory."""


def lies_on_chip(memory: SSAValue) -> bool:
    return isa(memory.type, MemRefType) and memory.type.memory_space == ON_CHIP


@irdl_attr_definition
class StreamType(ParametrizedAttribute, TypeAttribute):
    """A FIFO of tokens: `!stream.stream<vector<1x16xi8>, depth: 2>`."""

    name = "stream.stream"
    token: VectorType
    depth: IntAttr

    @staticmethod
    def of(token: VectorType, depth: int) -> StreamType:
        return StreamType(token, IntAttr(depth))

    def verify(self) -> None:
        if self.depth.data < 1:
            raise VerifyException(f"stream: depth {self.depth.data} must be at least 1")

    def print_parameters(self, printer: Printer) -> None:
        _print_sized(printer, self.token, "depth", self.depth.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return _parse_sized(parser, "depth")


@irdl_attr_definition
class BlocksType(ParametrizedAttribute, TypeAttribute):
    """A channel of `count` buffers, each handed over full: `!stream.blocks<memref<8x16xi8>, count: 2>`."""

    name = "stream.blocks"
    block: MemRefType
    count: IntAttr

    @staticmethod
    def of(block: MemRefType, count: int) -> BlocksType:
        return BlocksType(block, IntAttr(count))

    def verify(self) -> None:
        if self.count.data < 1:
            raise VerifyException(f"blocks: count {self.count.data} must be at least 1")

    def print_parameters(self, printer: Printer) -> None:
        _print_sized(printer, self.block, "count", self.count.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return _parse_sized(parser, "count")


def _print_sized(printer: Printer, what: Attribute, keyword: str, number: int) -> None:
    with printer.in_angle_brackets():
        printer.print_attribute(what)
        printer.print_string(f", {keyword}: {number}")


def _parse_sized(parser: AttrParser, keyword: str) -> list[Attribute]:
    with parser.in_angle_brackets():
        what = parser.parse_type()
        parser.parse_punctuation(",")
        parser.parse_keyword(keyword)
        parser.parse_punctuation(":")
        number = parser.parse_integer()
    return [what, IntAttr(number)]


@irdl_op_definition
class StreamOp(IRDLOperation):
    """A FIFO between two tasks."""

    name = "stream.stream"
    sym_name = prop_def(StringAttr)
    result = result_def(StreamType)
    assembly_format = "$sym_name attr-dict `:` type($result)"

    def __init__(self, name: str, kind: StreamType) -> None:
        super().__init__(result_types=[kind], properties={"sym_name": StringAttr(name)})


@irdl_op_definition
class BlocksOp(IRDLOperation):
    """A block channel between two tasks."""

    name = "stream.blocks"
    sym_name = prop_def(StringAttr)
    result = result_def(BlocksType)
    assembly_format = "$sym_name attr-dict `:` type($result)"

    def __init__(self, name: str, kind: BlocksType) -> None:
        super().__init__(result_types=[kind], properties={"sym_name": StringAttr(name)})


@irdl_op_definition
class BufferOp(IRDLOperation):
    """A memory local to one task."""

    name = "stream.buffer"
    sym_name = prop_def(StringAttr)
    result = result_def(MemRefType)
    assembly_format = "$sym_name attr-dict `:` type($result)"

    def __init__(self, name: str, kind: MemRefType) -> None:
        super().__init__(result_types=[kind], properties={"sym_name": StringAttr(name)})


@irdl_op_definition
class RomOp(IRDLOperation):
    """A parameter that lies on the chip, read by one task. `parameter` is its name in the program."""

    name = "stream.rom"
    sym_name = prop_def(StringAttr)
    parameter = prop_def(StringAttr)
    result = result_def(MemRefType)
    assembly_format = "$sym_name `of` $parameter attr-dict `:` type($result)"

    def __init__(self, name: str, parameter: str, kind: MemRefType) -> None:
        super().__init__(
            result_types=[kind], properties={"sym_name": StringAttr(name), "parameter": StringAttr(parameter)}
        )


@irdl_op_definition
class TaskOp(IRDLOperation):
    """A process: its local memories and the nests that it runs one after the other.

    Tasks of one `group` run at the same time, groups one after the other. With `injected`, hardware has a body that
    was written by hand, and the nests are what it has to answer.
    """

    name = "stream.task"
    sym_name = prop_def(StringAttr)
    layer = prop_def(StringAttr)
    group = prop_def(IntAttr)
    injected = opt_prop_def(StringAttr)
    irdl_options = (ParsePropInAttrDict(),)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    custom_directives = (NumberFormat,)
    assembly_format = "$sym_name `of` $layer `group` custom<NumberFormat>($group) attr-dict-with-keyword $body"

    def __init__(self, name: str, layer: str, body: Region, group: int = 0, injected: StringAttr | None = None) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name), "layer": StringAttr(layer), "group": IntAttr(group), "injected": injected,
            },
            regions=[body],
        )  # fmt: skip


@irdl_op_definition
class TopOp(IRDLOperation):
    """The accelerator: its memories as block arguments, its channels and tasks.

    `argument_names` and `argument_kinds` describe the block arguments: "input", "parameter" and "output" are the
    host's, "buffer" is a tensor that one group leaves in external memory for a later one. `layouts` says how each
    lies there: a layout, or a unit where it is plain.

    A top whose last argument is of the kind "calls" has a sequencer: one start runs the list of calls that lies there,
    one after the other. The list is their number, and for each the word at which each of `moved` begins. `feeds` names
    the input whose memory an output shares, since the next call reads there what this one leaves.

    A top with `lengths` has an argument of the kind "lengths": what each of them is in this call, in steps. Its
    memories are as large as at the largest.
    """

    name = "stream.top"
    sym_name = prop_def(StringAttr)
    argument_names = prop_def(ArrayAttr[StringAttr])
    argument_kinds = prop_def(ArrayAttr[StringAttr])
    layouts = prop_def(ArrayAttr[LayoutAttr | UnitAttr])
    feeds = opt_prop_def(DictionaryAttr)
    lengths = opt_prop_def(LengthsAttr)
    irdl_options = (ParsePropInAttrDict(),)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator())
    assembly_format = (
        "$sym_name `takes` $argument_names `as` $argument_kinds `lying` $layouts attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        name: str,
        names: ArrayAttr[StringAttr],
        kinds: ArrayAttr[StringAttr],
        body: Region,
        layouts: Sequence[LayoutAttr | None] | None = None,
        feeds: Mapping[str, str] | None = None,
    ) -> None:
        given = [None] * len(names) if layouts is None else layouts
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "argument_names": names,
                "argument_kinds": kinds,
                "layouts": ArrayAttr([one or UnitAttr() for one in given]),
                "feeds": DictionaryAttr({one: StringAttr(name) for one, name in feeds.items()}) if feeds else None,
            },
            regions=[body],
        )

    def layout(self, index: int) -> Layout | None:
        """How an argument lies in external memory; None for plain C order."""
        found = self.layouts.data[index]
        return found.layout if isinstance(found, LayoutAttr) else None

    @property
    def calls(self) -> BlockArgument | None:
        """Where the list of calls lies, if one start runs several."""
        kinds = self.argument_kinds.data
        return self.body.block.args[-1] if kinds and kinds[-1].data == CALLS else None

    @property
    def steps(self) -> BlockArgument | None:
        """Where a call's lengths lie, if it says any."""
        described = zip(self.body.block.args, self.argument_kinds, strict=True)
        return next((argument for argument, kind in described if kind.data == LENGTHS), None)

    @property
    def moved(self) -> tuple[BlockArgument, ...]:
        """The memories of which each call of a list has another part: inputs and outputs that are used."""
        described = zip(self.body.block.args, self.argument_kinds, strict=True)
        return tuple(a for a, kind in described if kind.data in ("input", "output") and a.first_use is not None)

    @property
    def fed(self) -> dict[str, str]:
        """By the name of an output, that of the input of the next call that it is."""
        if self.feeds is None:
            return {}
        return {name: text.data for name, text in self.feeds.data.items() if isinstance(text, StringAttr)}

    def verify_(self) -> None:
        names, kinds = self.argument_names.data, [k.data for k in self.argument_kinds]
        if not len(names) == len(kinds) == len(self.layouts) == len(self.body.block.args):
            raise VerifyException(f"top {self.sym_name.data}: one name, one kind and one layout an argument")
        if any(k not in ARGUMENT_KINDS for k in kinds):
            raise VerifyException(f"top {self.sym_name.data}: argument kinds {kinds}; use {ARGUMENT_KINDS}")
        if CALLS in kinds[:-1]:
            raise VerifyException(f"top {self.sym_name.data}: the list of calls is its last argument, or there is none")
        self._verify_feeds(dict(zip([n.data for n in names], self.body.block.args, strict=True)))
        for channel in self.body.block.ops:
            if isinstance(channel, StreamOp | BlocksOp):
                _verify_ends(channel)

    def _verify_feeds(self, arguments: Mapping[str, SSAValue]) -> None:
        """An output and the input that it feeds are one memory, so they have one form."""
        if self.feeds is not None and self.calls is None:
            raise VerifyException(f"top {self.sym_name.data}: outputs feed inputs, and there is no list of calls")
        layouts = {name.data: layout for name, layout in zip(self.argument_names, self.layouts, strict=True)}
        for made, given in self.fed.items():
            one, other = arguments.get(made), arguments.get(given)
            if one is None or other is None or one.first_use is None or other.first_use is None:
                raise VerifyException(f"top {self.sym_name.data}: {made} feeds {given}, and both must be in use")
            if one.type != other.type or layouts[made] != layouts[given]:
                raise VerifyException(f"top {self.sym_name.data}: {made} lies otherwise than {given}, which it feeds")


def _verify_ends(channel: StreamOp | BlocksOp) -> None:
    """A channel has exactly one writing and one reading task."""
    writers: set[str] = set()
    readers: set[str] = set()
    for use in channel.result.uses:
        task = use.operation.parent_op()
        while task is not None and not isinstance(task, TaskOp):
            task = task.parent_op()
        if task is None:
            raise VerifyException(f"channel {channel.sym_name.data}: used outside a task")
        writes = use.operation.name in ("nest.write", "nest.store")
        (writers if writes else readers).add(task.sym_name.data)
    if len(writers) != 1 or len(readers) != 1:
        raise VerifyException(
            f"channel {channel.sym_name.data}: written by {sorted(writers)} and read by {sorted(readers)}; "
            "a channel has one writer and one reader, fork it for more"
        )


StreamDialect = Dialect("stream", [StreamOp, BlocksOp, BufferOp, RomOp, TaskOp, TopOp], [StreamType, BlocksType])
