"""Where every node of an exported graph comes from in the user's model.

torch-mlir turns a node's stack trace into the MLIR location of all operations made from it. So each node's trace is
replaced by one that holds the node's number, and the number is looked up here after lowering.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch._ops import OpOverload

from penstock.compiler.places import WrittenPlace, shown_line

_MARK = "penstock"
_ONNX = "penstock.compiler.frontend.onnx_graph."
_TORCH = str(Path(torch.__file__).parent)
_LOCATION = re.compile(rf'"{_MARK}":(\d+)')
_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in [^\n]*\n[ \t]+(?!File ")([^\n]*))?')


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
        return self.module.startswith(_ONNX)

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


def mark_origins(program: torch.export.ExportedProgram) -> dict[int, Origin]:
    """Number the nodes of the graph, in place, and tell what each number stands for."""
    origins: dict[int, Origin] = {}
    for number, node in enumerate(program.graph.nodes):
        if node.op == "call_function":
            origins[number] = origin_of(node)
            node.meta["stack_trace"] = f'File "{_MARK}", line {number}, in forward\n'
    return origins


def origin_of(node: torch.fx.Node) -> Origin:
    modules: dict[str, tuple[str, str | type]] = node.meta.get("nn_module_stack") or {}
    path, module = list(modules.values())[-1] if modules else ("", "")
    trace: str = node.meta.get("stack_trace") or ""
    frames: list[tuple[str, str, str]] = _FRAME.findall(trace)
    file, number, line = next((one for one in reversed(frames) if not one[0].startswith((_TORCH, "<"))), ("", "", ""))
    source = f"{file.rsplit('/', 1)[-1]}:{number}" if file else ""
    name = module if isinstance(module, str) else module.__qualname__
    if name.startswith(_ONNX):
        source = f"ONNX {name.removeprefix(_ONNX)}"
    return Origin(str(path), name, op_name(node), source, line)


def op_name(node: torch.fx.Node) -> str:
    """The bare name of a node's operation: "relu" for aten.relu.default."""
    target = node.target
    if isinstance(target, OpOverload):
        return target.name().split("::")[-1].split(".")[0].strip("_")
    return getattr(target, "__name__", str(target))


def numbers_in(location: str) -> list[int]:
    """The node numbers that an MLIR location was made from, in order."""
    return [int(number) for number in _LOCATION.findall(location)]
