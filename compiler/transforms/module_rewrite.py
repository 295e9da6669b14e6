"""What a pass below linalg is that can take its module apart: several in a row then share one, and copy nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.transforms.passes import ModulePass


@dataclass(frozen=True)
class ModuleRewrite(ModulePass, ABC):
    """A pass with two ways in: `apply` leaves the module that it is given as it was, `rewrite` uses it up."""

    @abstractmethod
    def rewrite(self, module: ModuleOp) -> ModuleOp: ...

    def apply(self, module: ModuleOp) -> ModuleOp:
        return self.rewrite(module.clone())
