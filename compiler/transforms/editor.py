"""A copy of a program that passes may change: its function, its arguments by name, its parameters' data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    Float32Type,
    FunctionType,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.names import Names
from penstock.compiler.places import joined
from penstock.compiler.program import Program

LAYER = "penstock.layer"


class Editor:
    """Cloned on creation, so that the program given stays as it was. Several passes may share one: see `rewrite`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.signature = program.signature
        self.module: ModuleOp = program.module.clone()
        self.main = _main_function(self.module)
        self.block = self.main.body.block
        self.params: dict[str, Array] = dict(program.params)
        self._places = dict(program.places)
        self._layer_weights: tuple[dict[str, Array], ...] | None = None
        described = list(self.main.arg_attrs or [])
        self._named = {
            argument: (_text(d, "penstock.name"), _text(d, "penstock.kind"))
            for argument, d in zip(self.block.args, described, strict=True)
        }

    def generics(self) -> Iterator[linalg.GenericOp]:
        """The generics that are in the function now; it may be changed meanwhile."""
        for op in list(self.block.ops):
            if isinstance(op, linalg.GenericOp) and op.parent is not None:
                yield op

    def is_param(self, value: SSAValue) -> bool:
        return isinstance(value, BlockArgument) and self._named.get(value, ("", ""))[1] == "param"

    def is_input(self, value: SSAValue) -> bool:
        return isinstance(value, BlockArgument) and self._named.get(value, ("", ""))[1] == "input"

    def name(self, argument: SSAValue) -> str:
        return self._named[cast(BlockArgument, argument)][0]

    def data(self, param: SSAValue) -> Array:
        return self.params[self.name(param)]

    def add_param(self, name: str, data: Array, element: Attribute | None = None) -> BlockArgument:
        """A new last argument with its data; the name gets a number behind it if it is taken.

        Its elements are as the data, or narrower ones that the data holds.
        """
        name = self._free_name(name)
        argument = self.block.insert_arg(tensor_of(data.shape, element or element_type(data)), len(self.block.args))
        self._named[argument] = (name, "param")
        self.params[name] = self._stored(data)
        return argument

    def rename(self, argument: SSAValue, name: str) -> None:
        """Give a parameter another name; a number behind it if that is taken."""
        old, kind = self._named.pop(cast(BlockArgument, argument))
        name = self._free_name(name)
        self._named[cast(BlockArgument, argument)] = (name, kind)
        self.params[name] = self.params.pop(old)

    def set_layer_weights(self, rows: Mapping[str, Array]) -> None:
        """Which parameters differ between layers that share the accelerator now: a row a layer."""
        if (layers := self.program.layers) is not None:
            self._layer_weights = tuple(
                {name: np.ascontiguousarray(data[number]) for name, data in rows.items()}
                for number in range(len(layers.names))
            )

    def replace_by_param(self, op: Operation, name: str, data: Array) -> BlockArgument:
        """Put a parameter in the place of an operation's result, and in that of the parameter it was made from."""
        params = [x for x in op.operands if self.is_param(x)]
        index = cast(BlockArgument, params[0]).index if len(params) == 1 else len(self.block.args)
        argument = self.block.insert_arg(op.results[0].type, index)
        op.results[0].replace_all_uses_with(argument)
        self.remove_unread(op)  # frees the name of a parameter that nobody reads any more
        name = self._free_name(name)
        self._named[argument] = (name, "param")
        self.params[name] = self._stored(data)
        return argument

    def retype(self, argument: SSAValue, kind: Attribute) -> BlockArgument:
        """Change the type of an argument; a parameter's data takes the new shape, in the same C order."""
        old = cast(BlockArgument, argument)
        new = self.block.insert_arg(kind, old.index)
        old.replace_all_uses_with(new)
        name, role = self._named.pop(old)
        self._named[new] = (name, role)
        self.block.erase_arg(old)
        if role == "param":
            self.params[name] = self.params[name].reshape(shape_of(new))
        return new

    def remove_dead(self) -> None:
        """Erase what nobody reads: every operation of these functions is pure. Inputs stay, parameters go."""
        for op in reversed(list(self.block.ops)):
            if not isinstance(op, func.ReturnOp) and all(result.first_use is None for result in op.results):
                op.detach()
                op.erase()
        for argument in reversed(self.block.args):
            self._drop_unread(argument)

    def remove_unread(self, op: Operation) -> None:
        """The same of one operation that nobody reads, and of what it alone read: no walk through all others."""
        waiting: list[SSAValue] = list(op.results)
        while waiting:
            value = waiting.pop()
            if isinstance(value, BlockArgument):
                self._drop_unread(value)
                continue
            maker = value.owner
            assert isinstance(maker, Operation)
            if maker.parent is not None and all(result.first_use is None for result in maker.results):
                waiting += maker.operands
                maker.detach()
                maker.erase()

    def _drop_unread(self, argument: BlockArgument) -> None:
        if self.is_param(argument) and argument.first_use is None:
            name, _ = self._named.pop(argument)
            del self.params[name]
            self.block.erase_arg(argument)

    def _stored(self, data: Array) -> Array:
        """In C order; a parameter without numbers (one number seen everywhere) stays without memory."""
        return np.asarray(data, order="C") if self.program.has_weights or any(data.strides) else data

    def _free_name(self, name: str) -> str:
        return Names({used for used, _ in self._named.values()}).take(name)

    def layers(self) -> set[str]:
        return {layer_of(op) for op in self.generics()}

    def free_layer(self, wanted: str, leaving: Set[str] = frozenset()) -> str:
        """A name for a new operation, which may be that of one that is about to go."""
        return Names(self.layers() - leaving).take(wanted)

    def say_joined(self, layer: str, of: Sequence[str]) -> None:
        """An operation is made of others: its lines in the user's model are theirs."""
        if found := joined(self._places, of):
            self._places[layer] = found

    def finish(self) -> Program:
        """The changed program, verified; dead code and unread parameters are gone. Raises `VerifyException`."""
        program = self.snapshot()
        self.module.verify()
        return program

    def snapshot(self) -> Program:
        """The program as it is now, without a copy: for looking at while it changes."""
        self.remove_dead()
        terminator = self.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        self.main.function_type = FunctionType.from_lists(
            [argument.type for argument in self.block.args], [value.type for value in terminator.arguments]
        )
        self.main.arg_attrs = ArrayAttr(
            DictionaryAttr({"penstock.name": StringAttr(name), "penstock.kind": StringAttr(kind)})
            for name, kind in (self._named[argument] for argument in self.block.args)
        )
        params = {name: self.params[name] for name in map(self.name, filter(self.is_param, self.block.args))}
        layers = self.program.layers
        if layers is not None and self._layer_weights is not None:
            layers = replace(layers, weights=self._layer_weights)
        return self.program.with_module(
            self.module, params=params, signature=self.signature, layers=layers, places=dict(self._places)
        )


def _main_function(module: ModuleOp) -> func.FuncOp:
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main":
            return op
    raise PenstockError(code="invalid-ir", what="the module has no function @main")


def _text(attributes: DictionaryAttr, key: str) -> str:
    value = attributes.data.get(key)
    if not isinstance(value, StringAttr):
        raise PenstockError(code="not-canonical", what=f"an argument of @main has no {key}")
    return value.data


def layer_of(op: Operation) -> str:
    value = op.attributes.get(LAYER)
    return value.data if isinstance(value, StringAttr) else op.name


def tensor_of(shape: tuple[int, ...], element: Attribute) -> TensorType[Any]:
    return TensorType(element, list(shape))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    kind = value.type
    assert isinstance(kind, TensorType)
    return tuple(cast("TensorType[Any]", kind).get_shape())


def element_type(data: Array) -> Attribute:
    if data.dtype == np.float32:
        return Float32Type()
    if data.dtype == np.bool_:
        return IntegerType(1)
    assert data.dtype.kind == "i"
    return IntegerType(data.dtype.itemsize * 8)
