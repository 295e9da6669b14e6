"""A file of a task program as a program: read and checked, never executed, with the answers of its interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.program import Port, Program, Samples, Signature
from penstock.compiler.reference import TaskReference, check_file
from penstock.compiler.scalars.number_types import named, sent_types
from penstock.compiler.tasks.interpret import stored_as
from penstock.compiler.tasks.kinds import TileKind, is_float
from penstock.compiler.tasks.lowering.scalars import type_of
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.tasks.network import Instances, tokens
from penstock.compiler.tasks.opened import open_network
from penstock.compiler.tasks.source import CODE, MODULE, MOST_BYTES, is_task_source
from penstock.compiler.transforms.lower_tasks import nests_of

REFERENCE = "task interpreter"
MOST_SAMPLED = 1_000_000
"""Puts and gets of all tasks, up to which the interpreter answers at import: a minute's work."""


def task_text(path: Path) -> str | None:
    """The text of a file that is a task program; None of another."""
    check_file(path)
    if path.stat().st_size > MOST_BYTES:
        return None
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    return text.expandtabs() if is_task_source(text) else None


def import_tasks(reference: TaskReference) -> Program:
    """The program that a reference names. A file that is none is refused: it may be anybody's code."""
    text = task_text(reference.path)
    if text is None:
        raise PenstockError(
            code="model-reference", what="the file is no task program", where=str(reference.path),
            limit=f"a task program says `from {MODULE} import ...`, and has at most {MOST_BYTES} bytes",
            hint=f"a PyTorch model is named with its function: {reference.path}:model",
        )  # fmt: skip
    options = dict(reference.options)
    network = open_network(reference.path.name, text, reference.program, tuple(sorted(options.items())))
    if network.program.limits is None:  # loops that make no pipeline are told now, not in a trial
        for _ in nests_of(elements(network, ()), arrays=False):
            pass
    inputs, outputs = _ports(network, network.inputs), _ports(network, network.outputs)
    block = Block(arg_types=[_tensor(network, port.name) for port in inputs])
    results = [_tensor(network, port.name) for port in outputs]
    op = ProgramOp(network.program.name, reference.path.name, text, options, block.args, results)
    block.add_ops([op, ReturnOp(*op.results)])
    main = FuncOp("main", ([a.type for a in block.args], results), Region(block))
    main.arg_attrs = ArrayAttr(
        DictionaryAttr({"penstock.name": StringAttr(port.name), "penstock.kind": StringAttr("input")})
        for port in inputs
    )
    module = ModuleOp([main])
    module.verify()
    name = TaskReference(reference.path, network.program.name).name
    program = Program(name, module, {}, Signature(inputs, outputs))
    counts = {body: sum(tokens(body).values()) for body in network.bodies}
    if (passing := sum(counts[one.body] for one in network.instances)) > MOST_SAMPLED:
        note = f"{passing:,} puts and gets are too many to interpret the program at import: it comes without samples."
        return program.with_module(module, notes=(note,))
    samples = tuple(_drawn(network.program.tensors[port.name].kind, i) for i, port in enumerate(inputs))
    return program.with_module(module, samples=Samples(samples, tuple(run(program, samples)), REFERENCE))


def _ports(network: Instances, names: tuple[str, ...]) -> tuple[Port, ...]:
    found: list[Port] = []
    for name in names:
        tensor = network.program.tensors[name]
        if not named(tensor.kind.dtype if tensor.kind.dtype != "f32" else "f32").is_sent:
            raise network.source.error(
                tensor.node,
                f"{name} is a tensor of {tensor.kind}",
                "cast inside the tasks",
                f"tensors hold {sent_types()}",
            )
        found.append(Port(name, tensor.kind.shape, stored_as(tensor.kind.dtype).name))
    if not found:
        raise PenstockError(code=CODE, what="the program takes no tensors", where=network.source.name)
    return tuple(found)


def _tensor(network: Instances, name: str) -> TensorType:
    kind = network.program.tensors[name].kind
    return TensorType(type_of(kind.dtype), kind.shape)


def _drawn(kind: TileKind, seed: int) -> Array:
    generator, dtype = np.random.default_rng(seed), stored_as(kind.dtype)
    if is_float(kind.dtype):
        return generator.standard_normal(kind.shape).astype(dtype)
    return generator.integers(-8, 8, kind.shape).astype(dtype)
