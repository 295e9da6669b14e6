"""Where every node of an exported graph comes from in the user's model.

torch-mlir turns a node's stack trace into the MLIR location of all operations made from it. So each node's trace is
replaced by one that holds the node's number, and the number is looked up here after lowering.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch._ops import OpOverload

from penstock.compiler.frontend.origin import MARK, ONNX, Origin

_TORCH = str(Path(torch.__file__).parent)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in [^\n]*\n[ \t]+(?!File ")([^\n]*))?')


def mark_origins(program: torch.export.ExportedProgram) -> dict[int, Origin]:
    """Number the nodes of the graph, in place, and tell what each number stands for."""
    origins: dict[int, Origin] = {}
    for number, node in enumerate(program.graph.nodes):
        if node.op == "call_function":
            origins[number] = origin_of(node)
            node.meta["stack_trace"] = f'File "{MARK}", line {number}, in forward\n'
    return origins


def origin_of(node: torch.fx.Node) -> Origin:
    modules: dict[str, tuple[str, str | type]] = node.meta.get("nn_module_stack") or {}
    path, module = list(modules.values())[-1] if modules else ("", "")
    trace: str = node.meta.get("stack_trace") or ""
    frames: list[tuple[str, str, str]] = _FRAME.findall(trace)
    file, number, line = next((one for one in reversed(frames) if not one[0].startswith((_TORCH, "<"))), ("", "", ""))
    source = f"{file.rsplit('/', 1)[-1]}:{number}" if file else ""
    name = module if isinstance(module, str) else module.__qualname__
    if name.startswith(ONNX):
        source = f"ONNX {name.removeprefix(ONNX)}"
    return Origin(str(path), name, op_name(node), source, line)


def op_name(node: torch.fx.Node) -> str:
    """The bare name of a node's operation: "relu" for aten.relu.default."""
    target = node.target
    if isinstance(target, OpOverload):
        return target.name().split("::")[-1].split(".")[0].strip("_")
    return getattr(target, "__name__", str(target))
