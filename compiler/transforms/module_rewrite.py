"""What a pass below linalg is that can take its module apart: several in a row then share one, and copy nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue


class ModuleRewrite(ABC):
    """A pass with two ways in: `apply` leaves the module that it is given as it was, `rewrite` uses it up."""

    @abstractmethod
    def rewrite(self, module: ModuleOp) -> ModuleOp: ...

    def apply(self, module: ModuleOp) -> ModuleOp:
        return self.rewrite(module.clone())


def move(op: Operation, block: Block, values: Mapping[SSAValue, SSAValue]) -> None:
    """Put an operation at the end of another block, where it reads the new values."""
    op.detach()
    op.operands = [values.get(operand, operand) for operand in op.operands]
    block.add_op(op)


def discard(module: ModuleOp) -> None:
    """What is left of a module that was used up no longer reads what moved out of it."""
    module.erase(safe_erase=False)
