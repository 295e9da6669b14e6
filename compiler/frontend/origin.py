"""What is known of where an operation comes from, as a record: texts and task programs have it without PyTorch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.compiler.places import WrittenPlace, shown_line

MARK = "penstock"
ONNX = "penstock.compiler.frontend.onnx_graph."
_LOCATION = re.compile(rf'"{MARK}":(\d+)')


@dataclass(frozen=True)
class Origin:
    """`path` is the module's path in the model ("" at the top), `module` its class, `op` the PyTorch operation."""

    path: str
    module: str
    op: str
    source: str
    line: str = ""
    """The user's line that calls it, as it stands there."""

    @property
    def is_library_module(self) -> bool:
        return self.module.startswith("torch.nn.modules.")

    @property
    def is_onnx_node(self) -> bool:
        return self.module.startswith(ONNX)

    def operation(self) -> str:
        """The operation and the user's line that calls it."""
        return f"aten.{self.op} ({self.source})" if self.source else f"aten.{self.op}"

    def place(self) -> WrittenPlace:
        """As a page shows it."""
        file, _, number = self.source.rpartition(":")
        if self.is_onnx_node or not file:
            return WrittenPlace("", 0, "", shown_line(self.path), self.source or f"aten.{self.op}")
        return WrittenPlace(
            shown_line(file), int(number), shown_line(self.line), shown_line(self.path), f"aten.{self.op}"
        )

    def describe(self, model: str) -> str:
        """The place as an error message names it."""
        place = f"layer '{self.path}' of {model}" if self.path else f"the top level of {model}"
        return f"{place} ({self.source})" if self.source else place


def numbers_in(location: str) -> list[int]:
    """The node numbers that an MLIR location was made from, in order."""
    return [int(number) for number in _LOCATION.findall(location)]
