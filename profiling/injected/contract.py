"""A contract held against the body: in Verilator where it is SystemVerilog, compiled where it is C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.dialects import stream
from penstock.compiler.dialects.injected import Injected
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform
from penstock.compiler.tasks.bodies import BROKEN
from penstock.compiler.tasks.network import Instances, TaskInstance

Clause = Literal["tokens", "ii", "depth", "stalls", "answers", "body"]


@dataclass(frozen=True)
class BodyCase:
    """One body at one instance of its task; the module holds that task alone."""

    network: Instances
    instance: TaskInstance
    module: ModuleOp
    task: stream.TaskOp
    body: Injected
    platform: Platform
    clock_mhz: float

    @property
    def where(self) -> str:
        node = next((one.node for one in self.network.program.bodies if one.body.name == self.body.name), None)
        return f"{self.network.source.name}:{getattr(node, 'lineno', 0)}"

    def broken(self, clause: Clause, declared: object, measured: object, hint: str) -> PenstockError:
        return PenstockError(
            code=BROKEN, what=f"{self.body.name}: {clause}: declared {declared}, measured {measured}",
            where=self.where, limit="a body keeps the contract that it comes with", hint=hint,
        )  # fmt: skip
