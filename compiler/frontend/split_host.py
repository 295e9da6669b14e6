"""Cuts an exported graph into what runs on the host, as data, and the graph for the accelerator, in place.

Values that cross are float32: a condition goes into the accelerator as zeros and ones.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.fx import Interpreter, Node

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.host_regions import ExportedGraph, Regions, find_regions, is_numbered, reach
from penstock.compiler.frontend.lift import state_value
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.origins import op_name, origin_of
from penstock.compiler.host_parts import HostParts
from penstock.compiler.names import Names
from penstock.compiler.runtime.penstock_runtime.host import is_pure


@dataclass(frozen=True)
class Split:
    """What the host does, and PyTorch's values at the accelerator's borders (None without weights)."""

    parts: HostParts
    inputs: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...] | None


def split_off_host(
    program: ExportedProgram, model: LoadedModel, answers: tuple[torch.Tensor, ...] | None, names: list[str]
) -> Split | None:
    """Leave in `program` what the accelerator computes. None if that is all, or all but constants.

    `names` are the model's results'.
    """
    if any(spec.kind is not OutputKind.USER_OUTPUT for spec in program.graph_signature.output_specs):
        return None  # what else than buffers changes is refused when the weights are lifted
    regions = find_regions(program, model.name)
    graph = ExportedGraph(program)
    cut = _Cut(program, graph, regions)
    conditions = any(condition for _, condition in cut.input_values())
    on_host = bool(regions.before or regions.after or regions.between or conditions)
    wanted = {*regions.folded, *((*cut.entering, *cut.leaving) if on_host else ())}
    split = None
    if wanted or cut.numbered:
        seen = _run(program, graph, model, wanted) if model.has_weights else _shapes_only(wanted)
        split = _split(cut, model, seen, answers, names) if on_host else None
        cut.apply(seen, on_host=on_host)
    _drop_unused(program, {*graph.inputs, *graph.parameters})  # a shared one has several names, and some readers
    _check_inputs(program, model)
    return split


class _Cut:
    """The accelerator's part of a graph and the values at its borders."""

    def __init__(self, program: ExportedProgram, graph: ExportedGraph, regions: Regions) -> None:
        self.program, self.graph, self.regions = program, graph, regions
        self.middle = regions.middle
        own = (*regions.before, *self.middle, *regions.after)
        host = {n for n in own if n in graph.dependent} | set(regions.folded)
        consumers = [*self.middle, *regions.after, graph.output]
        used = dict.fromkeys(x for n in consumers for x in n.all_input_nodes)
        elsewhere = {*host, *own}
        self.leaving = [x for x in used if x.op == "call_function" and x not in elsewhere]
        stop = {*host, *graph.inputs, *graph.state}
        self.inside = reach(self.leaving, lambda n: [] if n in stop else n.all_input_nodes) - stop
        found = dict.fromkeys(x for n in graph.calls if n in self.inside for x in n.all_input_nodes if x in stop)
        self.entering = [x for x in found if x in host or x in graph.inputs]
        self.numbered = [x for x in found if is_numbered(x, graph)]

    def apply(self, seen: Mapping[Node, torch.Tensor], *, on_host: bool) -> None:
        """Rewrite the program in place."""
        graph, signature = self.program.graph, self.program.graph_signature
        first = next(n for n in graph.nodes if n.op != "placeholder")
        added: dict[Node, str] = {}
        for node in self.numbered:
            _store(
                self.program,
                _target(self.program, node),
                state_value(self.program, _target(self.program, node)).float(),
            )
            self._enter(node, node, first)
        for node in self.entering:
            if node in self.graph.inputs and node.meta["val"].dtype == torch.float32:
                continue
            with graph.inserting_before(first):
                placeholder = graph.placeholder(Names(n.name for n in graph.nodes).take(node.name))
            added[placeholder] = _port_name(node)
            argument = TensorArgument(placeholder.name)
            if node in self.regions.folded:
                name = f"{origin_of(node).path or 'constant'}.{node.name}"
                signature.input_specs.append(InputSpec(InputKind.CONSTANT_TENSOR, argument, name))
                self.program.constants[name] = seen[node].to(torch.float32)
            else:
                signature.input_specs.append(InputSpec(InputKind.USER_INPUT, argument, None))
            placeholder.meta.update(node.meta)
            self._enter(node, placeholder, first)
        if on_host:
            self.graph.output.args = (tuple(self.leaving),)
            signature.output_specs[:] = [
                OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n.name), None) for n in self.leaving
            ]
        graph.eliminate_dead_code()
        _drop_unused(self.program, set() if on_host else set(self.graph.inputs))
        self._rename(added)
        graph.lint()
        self.program.graph_module.recompile()

    def _enter(self, value: Node, placeholder: Node, first: Node) -> None:
        """Let the accelerator's nodes read the placeholder, which is float32, instead of the value."""
        graph, kind = self.program.graph, value.meta["val"].dtype
        users = [n for n in value.users if n in self.inside]
        shape = value.meta["val"]
        with shape.fake_mode:
            placeholder.meta["val"] = shape.to(torch.float32)
            condition = placeholder.meta["val"] != 0
        placeholder.meta.pop("tensor_meta", None)  # torch-mlir would believe it before the value's own type
        source = placeholder
        if kind == torch.bool:
            with graph.inserting_before(first):
                source = graph.call_function(torch.ops.aten.ne.Scalar, (placeholder, 0))
            source.meta.update({**value.meta, "val": condition})
            source.meta.pop("tensor_meta", None)
        for user in users:
            user.replace_input_with(value, source)

    def _rename(self, added: Mapping[Node, str]) -> None:
        """Call what comes from the host after its layers, now that the nodes that had those names are gone."""
        taken = {n.name for n in (*self.program.graph.nodes, *self.graph.inputs)}
        specs = self.program.graph_signature.input_specs
        for node, wanted in added.items():
            old = node.name
            taken.remove(old)
            name = Names(taken).take(wanted)
            taken.add(name)
            node.name = node.target = name
            place = next(i for i, spec in enumerate(specs) if spec.arg.name == old)
            specs[place] = InputSpec(specs[place].kind, TensorArgument(name), specs[place].target)

    def input_values(self) -> list[tuple[Node, bool]]:
        """The nodes whose values the host sends, in the order of the accelerator's arguments; whether as conditions."""
        plain = [n for n in self.graph.inputs if n in self.entering and n.meta["val"].dtype == torch.float32]
        others = [n for n in self.entering if n not in plain and n not in self.regions.folded]
        return [(n, n.meta["val"].dtype == torch.bool) for n in (*plain, *others)]


def _drop_unused(program: ExportedProgram, kept: set[Node]) -> None:
    """Take out all other placeholders that nothing reads: a model may have buffers that it does not use."""
    unused = [n for n in program.graph.nodes if n.op == "placeholder" and not n.users and n not in kept]
    names = {n.name for n in unused}
    for node in unused:
        program.graph.erase_node(node)
    signature = program.graph_signature
    signature.input_specs[:] = [spec for spec in signature.input_specs if spec.arg.name not in names]
    program.graph_module.recompile()


def _split(
    cut: _Cut,
    model: LoadedModel,
    seen: Mapping[Node, torch.Tensor],
    answers: tuple[torch.Tensor, ...] | None,
    output_names: list[str],
) -> Split:
    regions, graph = cut.regions, cut.graph
    names = _Names(cut)
    before = [document_of(n, why, names.of, model) for n, why in regions.before.items()]
    between = [[document_of(n, why, names.of, model) for n, why in stage.items()] for stage in regions.between]
    sent: list[str] = []
    later: dict[str, list[int]] = {}
    for node, condition in cut.input_values():
        sent.append(f"{node.name}_as_float" if condition else node.name)
        turn = cut.middle.get(node, 0)
        if turn:
            later[sent[-1]] = list(node.meta["val"].shape)
        if condition:
            (between[turn - 1] if turn else before).append({
                "name": sent[-1], "op": "aten._to_copy.default", "args": [{"value": node.name}],
                "kwargs": {"dtype": {"dtype": "float32"}}, "layer": origin_of(node).path,
                "why": "the accelerator takes float32",
            })  # fmt: skip
    after = [document_of(n, why, names.of, model) for n, why in regions.after.items()]
    results = cast("list[Node]", graph.output.args[0])
    values = {name: _array(_value(cut, node, seen)) for node, name in names.stored.items()}
    document = {
        "inputs": [port_of(n.name, n) for n in graph.inputs],
        "outputs": [port_of(name, n) for name, n in zip(output_names, results, strict=True)],
        "tables": tables_of((*regions.before, *cut.middle, *regions.after), graph.inputs),
        "before": before,
        "accelerator": {
            "inputs": sent,
            "outputs": [n.name for n in cut.leaving],
            **({"later": later} if later else {}),
        },
        **_turns(cut, between),
        "after": after,
        "results": [names.of(n) for n in results],
    }
    parts = HostParts(
        document,
        values,
        tuple(_array(x) for x in model.example_inputs) if answers else (),
        tuple(_array(x) for x in answers or ()),
    )
    inputs = tuple(seen[node].to(torch.float32) for node, _ in cut.input_values())
    return Split(parts, inputs, tuple(seen[n] for n in cut.leaving) if model.has_weights else None)


def _turns(cut: _Cut, between: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """What a host graph says of several calls of the accelerator; nothing of one."""
    if not between:
        return {}
    known = cut.regions.valid_from(n for n in cut.graph.calls if n in cut.inside)
    stages: list[dict[str, Any]] = []
    for turn, (nodes, operations) in enumerate(zip(cut.regions.between, between, strict=True)):
        read = {x for node in nodes for x in node.all_input_nodes}
        outputs = [n.name for n in cut.leaving if n in read and known[n] <= turn]
        stages.append({"outputs": outputs, "operations": operations})
    return {"between": stages}


class _Names:
    """How host/graph.json calls values; those that it stores are collected on the way."""

    def __init__(self, cut: _Cut) -> None:
        self.cut = cut
        self.stored: dict[Node, str] = {}

    def of(self, node: Node) -> str:
        if node in self.cut.graph.state:
            target = _target(self.cut.program, node)
            taken = {n.name for n in self.cut.graph.nodes}
            return self.stored.setdefault(node, node.name if target in taken else target)
        if node in self.cut.regions.folded:
            return self.stored.setdefault(node, node.name)
        return node.name


def document_of(node: Node, why: str, named: Callable[[Node], str], model: LoadedModel) -> dict[str, Any]:
    """An operation of the host as data; `named` says how values are called there."""
    origin = origin_of(node)
    args, kwargs = list(node.args), {k: a for k, a in node.kwargs.items() if not isinstance(a, torch.device)}
    if node.target is operator.getitem:
        op = "getitem"
    elif node.target is torch.ops.prims.convert_element_type.default:
        op, args, kwargs = "aten._to_copy.default", args[:1], {"dtype": args[1]}
    elif node.target is torch.ops.prims.squeeze.default:
        op = "aten.squeeze.dims"
    else:
        op = str(node.target)
        if not op.startswith("aten.") or not is_pure(torch, node.target, op.split(".")[1]):
            raise PenstockError(
                code="unsupported-op", what=f"the operation {op} is not supported, on the host neither",
                where=origin.describe(model.name), limit="the host runs core ATen operations without side effects",
                hint="do this step outside of the model",
            )  # fmt: skip
    return {
        "name": node.name, "op": op, "args": [_argument(a, named) for a in args],
        "kwargs": {k: _argument(a, named) for k, a in kwargs.items()}, "layer": origin.path, "why": why,
    }  # fmt: skip


def _argument(value: Any, named: Callable[[Node], str]) -> Any:
    if isinstance(value, Node):
        return {"value": named(value)}
    if isinstance(value, tuple | list):
        return [_argument(v, named) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    for kind, name in ((torch.dtype, "dtype"), (torch.layout, "layout"), (torch.memory_format, "memory_format")):
        if isinstance(value, kind):
            return {name: str(value).removeprefix("torch.")}
    assert value is None or isinstance(value, bool | int | float | str), value
    return value


class _Recorder(Interpreter):
    """Runs the graph as PyTorch would and keeps the values that are asked for."""

    def __init__(self, program: ExportedProgram, wanted: set[Node]) -> None:
        super().__init__(program.graph_module)
        self.wanted, self.seen = wanted, dict[Node, torch.Tensor]()

    def run_node(self, n: Node) -> Any:
        value: Any = super().run_node(n)
        if n in self.wanted:
            self.seen[n] = value
        return value


def _run(
    program: ExportedProgram, graph: ExportedGraph, model: LoadedModel, wanted: set[Node]
) -> dict[Node, torch.Tensor]:
    given = dict(zip(graph.inputs, model.example_inputs, strict=True))
    arguments = [
        given[n] if n in given else state_value(program, _target(program, n))
        for n in graph.nodes if n.op == "placeholder"
    ]  # fmt: skip
    recorder = _Recorder(program, wanted)
    with torch.no_grad():
        recorder.run(*arguments)
    return recorder.seen


def _shapes_only(wanted: set[Node]) -> dict[Node, torch.Tensor]:
    return {n: torch.zeros(n.meta["val"].shape, dtype=n.meta["val"].dtype) for n in wanted}


def _target(program: ExportedProgram, node: Node) -> str:
    return next(str(s.target) for s in program.graph_signature.input_specs if s.arg.name == node.name)


def _store(program: ExportedProgram, name: str, value: torch.Tensor) -> None:
    if name in program.state_dict:
        program.state_dict[name] = value
    else:
        program.constants[name] = value


def _value(cut: _Cut, node: Node, seen: Mapping[Node, torch.Tensor]) -> torch.Tensor:
    return seen[node] if node in seen else state_value(cut.program, _target(cut.program, node))


def _array(value: torch.Tensor) -> Array:
    if isinstance(value, FakeTensor):  # a shape without numbers, which takes no memory
        return np.broadcast_to(np.zeros((), str(value.dtype).removeprefix("torch.")), tuple(value.shape))
    return np.asarray(value.detach().numpy(), order="C")


def port_of(name: str, node: Node) -> dict[str, Any]:
    value: torch.Tensor = node.meta["val"]
    return {"name": name, "shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}


def _port_name(node: Node) -> str:
    name = re.sub(r"\W", "_", origin_of(node).path, flags=re.ASCII).strip("_")
    return f"{node.name}_{name}" if name[:1].isdigit() else name or node.name  # as Sequential calls its parts


def tables_of(nodes: Iterable[Node], inputs: Sequence[Node]) -> dict[str, int]:
    """For inputs that are looked up in tables directly: how many entries the smallest table has."""
    found: dict[str, int] = {}
    for node in nodes:
        if op_name(node) == "embedding" and node.args[1] in inputs:
            table, index = node.args[0], node.args[1]
            assert isinstance(table, Node)
            assert isinstance(index, Node)
            size = int(table.meta["val"].shape[0])
            found[index.name] = min(size, found.get(index.name, size))
    return found


def values_read(nodes: Iterable[Mapping[str, Any]]) -> set[str]:
    """The values that operations of a host graph take."""
    found = set[str]()

    def look(value: Any) -> None:
        if isinstance(value, dict) and "value" in value:
            found.add(str(value["value"]))  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            for one in value:  # pyright: ignore[reportUnknownVariableType]
                look(one)

    for node in nodes:
        look([node["args"], *node["kwargs"].values()])
    return found


def _check_inputs(program: ExportedProgram, model: LoadedModel) -> None:
    """What the accelerator takes is float32."""
    kinds = {spec.arg.name: spec.kind for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if (
            node.op == "placeholder"
            and isinstance(value, torch.Tensor)
            and value.dim() > 0
            and value.dtype != torch.float32
        ):
            kind = "input" if kinds[node.name] is InputKind.USER_INPUT else "buffer"
            raise PenstockError(
                code="unsupported-dtype", what=f"{kind} {node.name!r} is {str(value.dtype).removeprefix('torch.')}",
                where=model.reference, limit="the accelerator takes float32",
                hint="leave it out if nothing uses it, or use module.float() and inputs.float()",
            )  # fmt: skip
