"""Packs the tensors in external memory into tiles and widens them to words (StreamTensor, section 4.2).

The layout of a tensor suits the stream that writes it, or the first that reads it. Memory is accessed a word at a
time: where words are not the stream's own slices, a converter cuts them up or puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from penstock.compiler.analysis.packing import choose_layout, word_order
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.itensor import ITensorType, LayoutAttr
from penstock.compiler.dialects.itensor_types import expect_itensor
from penstock.compiler.platforms import load_platform
from penstock.compiler.transforms.module_rewrite import ModuleRewrite, discard, move


@dataclass(frozen=True)
class PackInterfaces(ModuleRewrite):
    """The pass. `port_bits` is the width of a port to external memory; tensors that it does not suit stay plain.

    Where a platform's arguments are arrays on the chip nothing is packed: their banks deliver any slice as it is.
    """

    port_bits: int = 512
    platform: str = ""

    def rewrite(self, module: ModuleOp) -> ModuleOp:
        if self.platform and load_platform(self.platform).has_array_arguments:
            return module
        function = next(op for op in module.ops if isinstance(op, func.FuncOp))
        packed = _Packing(function, self.port_bits).build()
        discard(module)
        return packed


@dataclass
class _Packing:
    """`layouts` and `values` are by the tensors of the @main that is given; `values` holds the new ones."""

    function: func.FuncOp
    port_bits: int
    layouts: dict[SSAValue, LayoutAttr] = field(default_factory=dict[SSAValue, LayoutAttr])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    types: dict[SSAValue, Attribute] = field(default_factory=dict[SSAValue, Attribute])
    block: Block = field(default_factory=Block)

    def build(self) -> ModuleOp:
        kernels = [op for op in self.function.body.block.ops if isinstance(op, itensor.KernelOp)]
        self._choose(kernels)
        for argument in self.function.body.block.args:
            new = self.block.insert_arg(self._type(argument), argument.index)
            new.name_hint = argument.name_hint
            self.values[argument] = new
        for kernel in kernels:
            self._kernel(kernel)
        terminator = self.function.body.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        outputs = [self.values[v] for v in terminator.arguments]
        self.block.add_op(func.ReturnOp(*outputs))
        kind = FunctionType.from_lists([a.type for a in self.block.args], [v.type for v in outputs])
        assert self.function.arg_attrs is not None
        arguments = ArrayAttr(
            _with_layout(given, self.layouts.get(argument))
            for given, argument in zip(self.function.arg_attrs, self.function.body.block.args, strict=True)
        )
        results = None  # nothing to say prints, and so parses, otherwise than an empty list
        if any(v in self.layouts for v in terminator.arguments):
            results = ArrayAttr(_with_layout(DictionaryAttr({}), self.layouts.get(v)) for v in terminator.arguments)
        region = Region(self.block)
        return ModuleOp([func.FuncOp("main", kind, region, arg_attrs=arguments, res_attrs=results)])

    def _choose(self, kernels: Sequence[itensor.KernelOp]) -> None:
        """A layout for every tensor that loads and stores alone touch."""
        streams: dict[SSAValue, tuple[ITensorType, Attribute]] = {}
        plain: set[SSAValue] = set()
        for kernel in kernels:
            for argument, source in zip(kernel.body.block.args, kernel.sources, strict=True):
                for use in argument.uses:
                    if isinstance(use.operation, itensor.LoadOp):
                        streams.setdefault(source, (expect_itensor(use.operation.result), source.type))
                    else:
                        plain.add(source)
            for result, value in zip(kernel.outputs, _yielded(kernel), strict=True):
                store = value.owner
                assert isinstance(store, itensor.StoreOp)
                streams[result] = expect_itensor(store.source), result.type
        for value, (kind, _) in streams.items():
            layout = None if value in plain else choose_layout(kind, self.port_bits)
            if layout is not None:
                self.layouts[value] = LayoutAttr.of(layout)
                self.types[value] = self.layouts[value].packed(kind)

    def _kernel(self, kernel: itensor.KernelOp) -> None:
        block = Block()
        mapping: dict[SSAValue, SSAValue] = {}
        sources: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, kernel.sources, strict=True))
        for argument, source in sources.items():
            mapping[argument] = block.insert_arg(self._type(source), len(block.args))
            mapping[argument].name_hint = argument.name_hint
        results = dict(zip(_yielded(kernel), kernel.outputs, strict=True))
        for op in list(kernel.body.block.ops):
            match op:
                case itensor.LoadOp() if (layout := self.layouts.get(sources[op.source])) is not None:
                    mapping[op.result] = _load(op, mapping[op.source], layout, block)
                case itensor.StoreOp() if (layout := self.layouts.get(results[op.result])) is not None:
                    mapping[op.result] = _store(op, mapping[op.source], layout, block)
                case _:
                    move(op, block, mapping)
                    mapping |= {result: result for result in op.results}
        new = itensor.KernelOp(
            kernel.sym_name.data, [self.values[v] for v in kernel.sources], [self._type(v) for v in kernel.outputs],
            Region(block), kernel.group.data,
        )  # fmt: skip
        self.block.add_op(new)
        self.values |= dict(zip(kernel.outputs, new.outputs, strict=True))

    def _type(self, value: SSAValue) -> Attribute:
        return self.types.get(value, value.type)


def _load(op: itensor.LoadOp, source: SSAValue, layout: LayoutAttr, block: Block) -> SSAValue:
    """Words off the memory, and a converter to the stream's slices."""
    wanted = expect_itensor(op.result)
    words = word_order(wanted, layout.layout)
    load = _add(itensor.LoadOp(op.sym_name.data, source, words, layout), block)
    if words == wanted:
        return load
    return _add(itensor.ConverterOp(f"unpack.{op.sym_name.data.removeprefix('load.')}", load, wanted), block)


def _store(op: itensor.StoreOp, source: SSAValue, layout: LayoutAttr, block: Block) -> SSAValue:
    """The stream's slices put together to words, and those into the memory."""
    given = expect_itensor(source)
    words = word_order(given, layout.layout)
    if words != given:
        name = op.sym_name.data.removeprefix("store.").removeprefix("spill.")
        source = _add(itensor.ConverterOp(f"pack.{name}", source, words), block)
    return _add(itensor.StoreOp(op.sym_name.data, source, layout.packed(given), layout), block)


def _add(op: Operation, block: Block) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _yielded(kernel: itensor.KernelOp) -> Sequence[SSAValue]:
    terminator = kernel.body.block.last_op
    assert isinstance(terminator, itensor.YieldOp)
    return terminator.values


def _with_layout(given: DictionaryAttr, layout: LayoutAttr | None) -> DictionaryAttr:
    return DictionaryAttr({**given.data, "penstock.layout": layout}) if layout is not None else given
