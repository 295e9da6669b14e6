"""Fuses the kernels of a group into one: the tensors between them become streams (StreamTensor, section 4.2).

Where the type that a value is made in is the type that its reader wants, the two are connected; elsewhere a converter
stands between, one for all readers of equal type. A stream has one reader, so several get a fork.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.transforms.module_rewrite import ModuleRewrite, discard, move

Kernels = Sequence[itensor.KernelOp]


@dataclass(frozen=True)
class FuseKernels(ModuleRewrite):
    """The pass. Which kernels belong together is written on them; a group's values flow forwards only."""

    def rewrite(self, module: ModuleOp) -> ModuleOp:
        function = next(op for op in module.ops if isinstance(op, func.FuncOp))
        kernels = [op for op in function.body.block.ops if isinstance(op, itensor.KernelOp)]
        block = Block()
        values: dict[SSAValue, SSAValue] = {}
        for argument in function.body.block.args:
            values[argument] = block.insert_arg(argument.type, argument.index)
            values[argument].name_hint = argument.name_hint
        terminator = function.body.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        returned: dict[int, SSAValue] = {}
        groups = sorted({kernel.group.data for kernel in kernels})
        for number in groups:
            members = [kernel for kernel in kernels if kernel.group.data == number]
            fusion = _Fusion(function, members, terminator, "" if number == groups[0] else f".group{number}")
            body = fusion.build()
            kernel = itensor.KernelOp(
                f"group{number}", [values[v] for v in fusion.imports], [v.type for v in fusion.exports], body, number
            )
            block.add_op(kernel)
            for export, result in zip(fusion.exports, kernel.outputs, strict=True):
                values[export] = result
            returned |= dict(zip(fusion.results, kernel.outputs, strict=False))
        outputs = [returned[i] for i in range(len(terminator.arguments))]
        block.add_op(func.ReturnOp(*outputs))
        kind = FunctionType.from_lists([a.type for a in block.args], [v.type for v in outputs])
        discard(module)
        return ModuleOp([func.FuncOp("main", kind, Region(block), arg_attrs=function.arg_attrs)])


@dataclass
class _Fusion:
    """One group. `streams` holds what every reader of a tensor gets, `mapping` the values of the members' blocks."""

    function: func.FuncOp
    members: Kernels
    terminator: func.ReturnOp
    suffix: str
    block: Block = field(default_factory=Block)
    mapping: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    streams: dict[tuple[SSAValue, ITensorType], list[SSAValue]] = field(
        default_factory=dict[tuple[SSAValue, ITensorType], list[SSAValue]]
    )
    readers: dict[SSAValue, list[ITensorType]] = field(
        default_factory=lambda: defaultdict[SSAValue, list[ITensorType]](list)
    )

    def __post_init__(self) -> None:
        self.made: dict[SSAValue, itensor.KernelOp] = {v: kernel for kernel in self.members for v in kernel.outputs}
        read = dict.fromkeys(v for kernel in self.members for v in kernel.sources if v not in self.made)
        arguments = sorted((v for v in read if isinstance(v, BlockArgument)), key=lambda v: v.index)
        self.imports: list[SSAValue] = [*arguments, *(v for v in read if not isinstance(v, BlockArgument))]
        self.results = [i for i, v in enumerate(self.terminator.arguments) if v in self.made]
        self.crossings = [v for v in self.made if any(self._leaves(use.operation) for use in v.uses)]
        self.exports = [*(self.terminator.arguments[i] for i in self.results), *self.crossings]

    def build(self) -> Region:
        inside: dict[SSAValue, SSAValue] = {}
        for value in self.imports:
            inside[value] = self.block.insert_arg(value.type, len(self.block.args))
            inside[value].name_hint = value.name_hint
        for kernel in self.members:
            for argument, source in zip(kernel.body.block.args, kernel.sources, strict=True):
                if source in inside:
                    self.mapping[argument] = inside[source]
                for use in argument.uses:
                    if isinstance(use.operation, itensor.LoadOp) and not self._is_param(source):
                        self.readers[source].append(_kind(use.operation.result))
        for value in self.imports:
            if kinds := self.readers[value]:
                name = f"{self._name(value)}{self.suffix}"  # other groups may load and convert it too
                load = itensor.LoadOp(f"load.{name}", inside[value], kinds[0])
                self._distribute(name, value, self._emit(load).results[0], kinds)
        for kernel in self.members:
            self._member(kernel)
        stores = [self._store(f"store.{i}", self.terminator.arguments[i]) for i in self.results]
        stores += [self._store(f"spill.{self._name(v)}", v) for v in self.crossings]
        self.block.add_op(itensor.YieldOp(stores))
        return Region(self.block)

    def _member(self, kernel: itensor.KernelOp) -> None:
        sources: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, kernel.sources, strict=True))
        terminator = kernel.body.block.last_op
        assert isinstance(terminator, itensor.YieldOp)
        for op in list(kernel.body.block.ops):
            match op:
                case itensor.LoadOp() if not self._is_param(sources[op.source]):
                    self.mapping[op.result] = self.streams[sources[op.source], _kind(op.result)].pop(0)
                case itensor.StoreOp():
                    value = kernel.outputs[list(terminator.values).index(op.result)]
                    made = _kind(op.source)
                    leaving = sum(export is value for export in self.exports)
                    wanted = [*self.readers[value], *([made] * leaving)]
                    self._distribute(self._name(value), value, self.mapping[op.source], wanted)
                case itensor.YieldOp():
                    pass
                case _:
                    move(op, self.block, self.mapping)
                    self.mapping |= {result: result for result in op.results}

    def _distribute(self, name: str, value: SSAValue, stream: SSAValue, wanted: Sequence[ITensorType]) -> None:
        """Give every reader of `value` a stream of the type that it wants; equal conversions are shared."""
        kind = _kind(stream)
        plain = wanted.count(kind)
        converted = [other for other in dict.fromkeys(wanted) if other != kind]
        copies = self._fork(f"fork.{name}", stream, plain + len(converted))
        self.streams[value, kind] = copies[:plain]
        for index, (other, copy) in enumerate(zip(converted, copies[plain:], strict=True)):
            suffix = f".{index}" if len(converted) > 1 else ""
            converter = self._emit(itensor.ConverterOp(f"convert.{name}{suffix}", copy, other))
            self.streams[value, other] = self._fork(
                f"fork.{name}.converted{suffix}", converter.results[0], wanted.count(other)
            )

    def _fork(self, name: str, stream: SSAValue, count: int) -> list[SSAValue]:
        if count == 1:
            return [stream]
        return list(self._emit(itensor.ForkOp(name, stream, count)).results)

    def _store(self, name: str, value: SSAValue) -> SSAValue:
        """A tensor leaves in the order that it is made in."""
        stream = self.streams[value, _kind(_stored(value).source)].pop()
        return self._emit(itensor.StoreOp(name, stream, value.type)).results[0]

    def _leaves(self, op: Operation) -> bool:
        return isinstance(op, itensor.KernelOp) and all(op is not member for member in self.members)

    def _name(self, value: SSAValue) -> str:
        """What a person calls a tensor: its input, its layer, or the task that rearranged it."""
        if isinstance(value, BlockArgument):
            return self._attribute(value, "penstock.name")
        return _stored(value).sym_name.data.removeprefix("store.")

    def _is_param(self, value: SSAValue) -> bool:
        return isinstance(value, BlockArgument) and self._attribute(value, "penstock.kind") == "param"

    def _attribute(self, argument: BlockArgument, key: str) -> str:
        assert self.function.arg_attrs is not None
        value = self.function.arg_attrs.data[argument.index].data[key]
        assert isinstance(value, StringAttr)
        return value.data

    def _emit(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op


def _kind(value: SSAValue) -> ITensorType:
    assert isinstance(value.type, ITensorType)
    return value.type


def _stored(value: SSAValue) -> itensor.StoreOp:
    """The store that a result of a kernel comes from."""
    kernel = value.owner
    assert isinstance(kernel, itensor.KernelOp)
    assert isinstance(value, OpResult)
    terminator = kernel.body.block.last_op
    assert isinstance(terminator, itensor.YieldOp)
    store = terminator.values[value.index].owner
    assert isinstance(store, itensor.StoreOp)
    return store
