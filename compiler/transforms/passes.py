"""What a pass is: a frozen dataclass with a name, whose fields are its options, and what it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpecConvertible

from penstock.compiler.dialects import itensor, stream
from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.program import Program

Level = Literal["linalg", "tasks", "itensor", "stream"]


@dataclass(frozen=True)
class Pass(ArgSpecConvertible, ABC):
    """One step of the compiler. It leaves what it is given as it was, and its result verifies.

    `name` is what people call it. A field `design` is the record that a compilation is for.
    """

    takes: ClassVar[Level]
    """The level of the modules that it is for."""

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def run(self, program: Program) -> Program:
        """The program after this pass, with all else of it that had to change."""


@dataclass(frozen=True)
class ModulePass(Pass, ABC):
    """A pass below linalg, where parameters and signature no longer change: it takes the module alone."""

    @abstractmethod
    def apply(self, module: ModuleOp) -> ModuleOp: ...

    def run(self, program: Program) -> Program:
        return program.with_module(self.apply(program.module))


def level_of(module: ModuleOp) -> Level:
    """At which level a module is: what it is made of decides."""
    for op in module.walk():
        if isinstance(op, stream.TopOp):
            return "stream"
        if isinstance(op, itensor.KernelOp):
            return "itensor"
        if isinstance(op, ProgramOp):
            return "tasks"
    return "linalg"
