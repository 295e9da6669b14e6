"""A file of a task program as a program: read and checked, never executed, with the answers of its interpreter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.blocks_beside import with_blocks
from penstock.compiler.frontend.bodies_beside import with_bodies_beside
from penstock.compiler.frontend.tile_file import planned_kernel
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.places import WrittenPlace, shown_line
from penstock.compiler.program import Port, Program, Samples, Signature
from penstock.compiler.reference import TaskReference, check_file
from penstock.compiler.scalars.number_types import named, sent_types
from penstock.compiler.tasks.interpret import MOST_SAMPLED, stored_as
from penstock.compiler.tasks.kinds import BFLOAT16, TileKind, is_fixed, is_float
from penstock.compiler.tasks.lowering.scalars import type_of
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.tasks.network import Instances, tokens_passing
from penstock.compiler.tasks.opened import open_network
from penstock.compiler.tasks.source import CODE, MODULE, MOST_BYTES, is_task_source, kernels_in
from penstock.compiler.transforms.lower_tasks import nests_of

REFERENCE = "task interpreter"


def task_text(path: Path) -> str | None:
    """The text of a file that is a task program; None of another."""
    text = _text_of(path)
    return text if text is not None and is_task_source(text) else None


def tile_text(path: Path, kernel: str = "") -> str | None:
    """The text of a file with a Triton kernel, of that name if one is asked for; None of another."""
    text = _text_of(path)
    kernels = [] if text is None else kernels_in(text)
    return text if kernels and (not kernel or kernel in kernels) else None


def _text_of(path: Path) -> str | None:
    check_file(path)
    if path.stat().st_size > MOST_BYTES:
        return None
    try:
        return path.read_bytes().decode().expandtabs()
    except UnicodeDecodeError:
        return None


def import_tasks(reference: TaskReference) -> Program:
    """The program that a reference names. A file that is none is refused: it may be anybody's code."""
    text = task_text(reference.path)
    if text is None and (kernel := tile_text(reference.path)) is not None:
        return import_tiles(reference, kernel)
    if text is None:
        raise PenstockError(
            code="model-reference", what="the file is no task program", where=str(reference.path),
            limit=f"a task program says `from {MODULE} import ...`, a tile program has a @triton.jit function; "
            f"at most {MOST_BYTES} bytes",
            hint=f"a PyTorch model is named with its function: {reference.path}:model",
        )  # fmt: skip
    network, program = _read(reference, text, reference.program, dict(reference.options))
    return _with_answers(network, program)


def read_tasks(reference: TaskReference) -> tuple[Instances, Program]:
    """A task program without samples, and its network."""
    text = task_text(reference.path)
    if text is None:
        raise PenstockError(
            code="model-reference", what="the file is no task program", where=str(reference.path),
            limit=f"what stands for layers of a model says `from {MODULE} import ...`; at most {MOST_BYTES} bytes",
            hint="docs/tasks.md teaches the language",
        )  # fmt: skip
    return _read(reference, text, reference.program, dict(reference.options))


def import_tiles(reference: TaskReference, text: str) -> Program:
    """A Triton kernel as the task program of its best plan that can be built; the plan is kept beside it."""
    made, record = planned_kernel(reference, text)
    program = _with_answers(*_read(reference, made, "", {}))
    note = (
        f"{record['kernel']} was planned onto {record['mesh']} ({record['blocks']}): {record['cycles']:,.0f} cycles by "
        "its description [simulated]; the figures of the design are those of the task program made of it."
    )
    return replace(
        program, name=TaskReference(reference.path, reference.program).name, mesh=record, notes=(*program.notes, note),
        places={"": (_kernel_place(reference.path.name, text, str(record["kernel"])),)},
    )  # fmt: skip


def _kernel_place(file: str, text: str, kernel: str) -> WrittenPlace:
    """Where a tile program's kernel begins: all of its cores do what stands there."""
    lines = text.splitlines()
    number = next((n for n, line in enumerate(lines, 1) if re.match(rf"def {re.escape(kernel)}\b", line)), 0)
    return WrittenPlace(
        shown_line(file) if number else "", number, shown_line(lines[number - 1]) if number else "", "", ""
    )


def _read(reference: TaskReference, text: str, entry: str, options: dict[str, str]) -> tuple[Instances, Program]:
    text = with_blocks(reference.path, with_bodies_beside(reference.path, text))
    network = open_network(reference.path.name, text, entry, tuple(sorted(options.items())))
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
    return network, Program(name, module, dict(network.tables), Signature(inputs, outputs))


def _with_answers(network: Instances, program: Program) -> Program:
    module = program.module
    if (passing := tokens_passing(network)) > MOST_SAMPLED:
        note = f"{passing:,} puts and gets are too many to interpret the program at import: it comes without samples."
        return program.with_module(module, notes=(note,))
    ports = enumerate(program.signature.inputs)
    samples = tuple(_drawn(network.program.tensors[port.name].kind, i) for i, port in ports)
    return program.with_module(module, samples=Samples(samples, tuple(run(program, samples)), REFERENCE))


def _ports(network: Instances, names: tuple[str, ...]) -> tuple[Port, ...]:
    found: list[Port] = []
    for name in names:
        tensor = network.program.tensors[name]
        dtype = tensor.kind.dtype
        if dtype == BFLOAT16 or is_fixed(dtype) or not named(dtype).is_sent:
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
