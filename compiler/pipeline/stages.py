"""The stages below canonical linalg, in order: what each is called, and the pass that leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.design import Design
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.compiler.transforms.lower_tasks import LowerTasks
from penstock.compiler.transforms.lower_to_streams import LowerToStreams
from penstock.compiler.transforms.module_rewrite import ModuleRewrite
from penstock.compiler.transforms.passes import ModulePass, level_of
from penstock.compiler.transforms.write_kernels import WriteKernels


@dataclass(frozen=True)
class Stage:
    """One level of a design, after the pass of that name. It verifies."""

    name: str
    module: ModuleOp


def itensor_passes(design: Design) -> tuple[tuple[str, ModulePass], ...]:
    """From canonical linalg to the itensor level that becomes hardware."""
    return (("kernels", WriteKernels(design)),)


def stream_passes(design: Design) -> tuple[tuple[str, ModulePass], ...]:
    """From the itensor level to streams, nests and their directives."""
    return (("streams", LowerToStreams(design)), ("directives", GenerateDirectives(design)))


def task_passes(design: Design) -> tuple[tuple[str, ModulePass], ...]:
    """From a task program to streams, nests and their directives."""
    return (("streams", LowerTasks(design)), ("directives", GenerateDirectives(design)))


def lowering_passes(module: ModuleOp, design: Design) -> tuple[tuple[str, ModulePass], ...]:
    """All of them, from what the module holds: a model or a task program."""
    if level_of(module) == "tasks":
        return task_passes(design)
    return (*itensor_passes(design), *stream_passes(design))


def run_passes(module: ModuleOp, passes: tuple[tuple[str, ModulePass], ...]) -> Iterator[Stage]:
    """The module after every pass, verified."""
    for name, one in passes:
        module = one.apply(module)
        module.verify()
        yield Stage(name, module)


def last_stage(module: ModuleOp, passes: tuple[tuple[str, ModulePass], ...], *, verify: bool = True) -> ModuleOp:
    """The module after all passes, verified at the end; no copies are made between them.

    A search over many designs may do without verification: what is wrong in a design, the passes refuse by name.
    """
    for position, (_, one) in enumerate(passes):
        if position > 0 and isinstance(one, ModuleRewrite):
            module = one.rewrite(module)  # what the pass before made is ours
        else:
            module = one.apply(module)
    if verify:
        module.verify()
    return module
