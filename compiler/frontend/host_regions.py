"""Decides which operations of an exported graph run on the host: look-ups, selections, integers.

The accelerator begins after the last such operation that no contraction comes before, and mostly ends where the first
other one begins. Where contractions need what such an operation makes of the accelerator's own results, the accelerator
is called again: for one answer of the model as often as host and accelerator take turns.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument
from torch.fx import Node

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.graph_calls import call_as
from penstock.compiler.frontend.origins import op_name, origin_of

LOOK_UPS = {"embedding", "index", "index_select", "gather", "take", "take_along_dim"}
SELECTIONS = {"argmax", "argmin", "topk", "sort", "argsort", "kthvalue", "median", "mode", "cummax", "cummin"}
WRITES = {"scatter", "scatter_add", "scatter_reduce", "index_put", "index_add", "index_copy", "masked_scatter"}
SCANS = {"cumsum", "cumprod", "logcumsumexp"}
CONTRACTIONS = {"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "convolution", "scaled_dot_product_attention"}
_VIEWS = {"view", "reshape", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice", "select", "clone",
          "detach", "alias", "lift_fresh_copy", "unsafe_view", "split", "split_with_sizes", "cat"}  # fmt: skip
_SAME_ORDER = {"slice", "view", "reshape", "unsqueeze", "squeeze", "clone", "detach", "alias", "lift_fresh_copy",
               "unsafe_view"}  # fmt: skip
_CASTS = {"to_copy", "convert_element_type"}
_PASSES = "penstock_passes"
"""In what a node is known by: that it copies a value for a result, on the host."""
_WHY = {
    **dict.fromkeys(LOOK_UPS, "looks values up at places that are computed"),
    **dict.fromkeys(SELECTIONS, "selects by comparing values with one another"),
    **dict.fromkeys(WRITES, "writes at places that are computed"),
    **dict.fromkeys(SCANS, "each result needs the one before it"),
    "linalg": "is no stream of sums and products",
}


@dataclass
class Regions:
    """`before`, `after` and `folded` hold nodes in the graph's order, with the reason why they are there.

    `between` holds the same of what runs on the host after each call of the accelerator but the last. `folded` do not
    depend on the inputs: they are computed once, at import.
    """

    before: dict[Node, str] = field(default_factory=dict[Node, str])
    after: dict[Node, str] = field(default_factory=dict[Node, str])
    between: list[dict[Node, str]] = field(default_factory=list[dict[Node, str]])
    folded: dict[Node, str] = field(default_factory=dict[Node, str])

    @property
    def empty(self) -> bool:
        return not (self.before or self.after or self.between or self.folded)

    @property
    def middle(self) -> dict[Node, int]:
        """What runs on the host between two calls of the accelerator: the number of the call that comes after it."""
        return {node: turn for turn, nodes in enumerate(self.between, 1) for node in nodes}

    def valid_from(self, nodes: Iterable[Node]) -> dict[Node, int]:
        """The first call of the accelerator that knows all that each of its nodes needs; `nodes` are in order."""
        middle, found = self.middle, dict[Node, int]()
        for node in nodes:
            found[node] = max((middle.get(x, found.get(x, 0)) for x in node.all_input_nodes), default=0)
        return found


class ExportedGraph:
    """Facts about the nodes of an exported program."""

    def __init__(self, program: ExportedProgram) -> None:
        self.nodes: list[Node] = list(program.graph.nodes)
        kinds = {spec.arg.name: spec.kind for spec in program.graph_signature.input_specs}
        self.inputs = [n for n in self.nodes if n.op == "placeholder" and kinds[n.name] is InputKind.USER_INPUT]
        self.state = [n for n in self.nodes if n.op == "placeholder" and kinds[n.name] is not InputKind.USER_INPUT]
        self.parameters = [n for n in self.state if kinds[n.name] is InputKind.PARAMETER]
        self.calls = [n for n in self.nodes if n.op == "call_function"]
        self.output = next(n for n in self.nodes if n.op == "output")
        self.dependent = reach(self.inputs, lambda n: n.users)

    def needs_host(self, node: Node) -> str:
        """Why a node cannot be on the accelerator whatever stands around it; empty where it can."""
        if _PASSES in node.meta:
            return "only passes a value on"
        name = op_name(node)
        extreme = name in ("max", "min") or "max_pool" in name
        if extreme and isinstance(node.meta.get("val"), tuple | list) and _index_is_used(node):
            return _WHY["argmax"]
        if node.target is operator.getitem:
            return ""  # goes where the operation goes that gave the tuple
        if name in _WHY:
            return _WHY[name]
        if node not in self.dependent:
            return _WHY["linalg"] if name.startswith("linalg_") else ""
        if is_integer(node) or any(is_integer(x) and x in self.dependent for x in node.all_input_nodes):
            return "works on integers"
        return ""


def find_regions(program: ExportedProgram, model: str) -> Regions:
    """Where every node goes; refuses a model that would need nothing but the host."""
    graph = ExportedGraph(program)
    needed = _needed(graph)
    if _copy_what_passes(program, graph, needed):
        graph = ExportedGraph(program)
        needed = _needed(graph)
    regions = Regions()
    for node in graph.calls:
        inputs = node.all_input_nodes
        constant = node not in graph.dependent and _PASSES not in node.meta
        if constant and (node in needed or any(x in regions.folded or is_numbered(x, graph) for x in inputs)):
            regions.folded[node] = "does not depend on the inputs"
    heavy = _heavy(graph, needed)
    behind_heavy = reach(heavy, lambda n: n.users)
    late = {n for n in needed if n in behind_heavy and n in graph.dependent}
    early = [n for n in needed if n not in late and (n in graph.dependent or _PASSES in n.meta)]
    after = reach(late, lambda n: n.users) - {graph.output}
    middle = set[Node]()
    wanted_before = reach(early, lambda n: n.all_input_nodes)
    if after & heavy:
        after, middle = _in_turns(graph, needed, heavy, late, wanted_before)
    regions.before = {
        n: needed.get(n, "an operation on the host needs it")
        for n in graph.calls if n in wanted_before and n not in regions.folded
    }  # fmt: skip
    after = after if middle else _with_conditions(graph, regions, after)
    fed = [x for n in after for x in n.all_input_nodes if x not in graph.dependent]
    constant = reach(fed, lambda n: n.all_input_nodes)
    regions.after = {
        n: needed.get(n, "an operation on the host needs it" if n in constant else "follows an operation on the host")
        for n in graph.calls if n in after | constant and n not in regions.folded
    }  # fmt: skip
    if middle:
        _number_turns(graph, regions, needed, middle)
    if not regions.empty:
        _refuse_nothing(graph, regions, model)
    return regions


def _needed(graph: ExportedGraph) -> dict[Node, str]:
    needed = {n: why for n in graph.calls if (why := graph.needs_host(n))}
    for node in graph.calls:
        if node.target is operator.getitem and node.args[0] in needed:
            needed[node] = needed[node.args[0]]
    return needed


def _copy_what_passes(program: ExportedProgram, graph: ExportedGraph, needed: dict[Node, str]) -> bool:
    """A result that is an input, a constant or a value of the host as it came becomes a copy, which the host makes.

    Where all results are such there is nothing to compute, and nothing is changed.
    """
    results = cast("list[Node | None]", graph.output.args[0])
    behind_heavy = reach(_heavy(graph, needed), lambda n: n.users)
    early = {n for n in needed if n not in behind_heavy}
    passed = {n for n in results if isinstance(n, Node) and n not in needed and _passes(n, graph, early)}
    if not passed or len(passed) == len({n for n in results if isinstance(n, Node)}):
        return False
    copies: dict[Node, Node] = {}
    for node in passed:
        with program.graph.inserting_before(graph.output):
            made = call_as(program, node)(torch.ops.aten.clone.default, node)
        made.meta[_PASSES] = True
        copies[node] = made
    graph.output.args = (tuple(n if n is None else copies.get(n, n) for n in results),)
    specs = program.graph_signature.output_specs
    specs[:] = [
        replace(spec, arg=TensorArgument(copies[n].name)) if n is not None and n in copies else spec
        for n, spec in zip(results, specs, strict=True)
    ]
    program.graph_module.recompile()
    return True


def _passes(node: Node, graph: ExportedGraph, host: set[Node]) -> bool:
    """Whether nothing is computed of it: its elements are those of a value that the host has, in their order."""
    while node.op == "call_function" and op_name(node) in _SAME_ORDER and node not in host:
        source = node.args[0]
        if not isinstance(source, Node) or (op_name(node) == "slice" and not _as_large(node, source)):
            return False
        node = source
    return node.op == "placeholder" or node not in graph.dependent or node in host


def _as_large(node: Node, source: Node) -> bool:
    return node.meta["val"].shape == source.meta["val"].shape


def reach(start: Iterable[Node], step: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Everything that can be reached from `start` (which is included)."""
    found, waiting = set[Node](), list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(step(node))
    return found


def dtype_of(node: Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def is_integer(node: Node) -> bool:
    dtype = dtype_of(node)
    return dtype is not None and dtype != torch.bool and not dtype.is_floating_point and not dtype.is_complex


def is_numbered(node: Node, graph: ExportedGraph) -> bool:
    """Whether a node is stored state that is neither float nor a scalar: masks and positions."""
    value = node.meta.get("val")
    tensor = isinstance(value, torch.Tensor) and value.dim() > 0 and not value.is_floating_point()
    return tensor and node in graph.state


def _index_is_used(node: Node) -> bool:
    return any(user.target is operator.getitem and user.args[1] == 1 and user.users for user in node.users)


def _heavy(graph: ExportedGraph, needed: dict[Node, str]) -> set[Node]:
    """What the accelerator is for: contractions, or, in a model without any, all arithmetic on floats."""
    free = [n for n in graph.calls if n in graph.dependent and n not in needed]
    contractions = {n for n in free if op_name(n) in CONTRACTIONS}
    return contractions or {n for n in free if dtype_of(n) == torch.float32 and op_name(n) not in _VIEWS}


def _with_conditions(graph: ExportedGraph, regions: Regions, after: set[Node]) -> set[Node]:
    """Only floats leave the accelerator: what makes a condition for the host is computed there too."""
    while True:
        leaving = {x for n in (*after, graph.output) for x in n.all_input_nodes} - after
        conditions = [
            n for n in leaving
            if n.op == "call_function" and n in graph.dependent and n not in regions.before
            and dtype_of(n) != torch.float32
        ]  # fmt: skip
        if not conditions:
            return after
        after = after | reach(conditions, lambda n: n.users) - {graph.output}


def _in_turns(
    graph: ExportedGraph, needed: dict[Node, str], heavy: set[Node], late: set[Node], before: set[Node]
) -> tuple[set[Node], set[Node]]:
    """What runs on the host at the end, and what between two calls of the accelerator.

    Light operations go where they carry least: to the accelerator where a contraction is before and behind them, or
    where the next host operation only wants their result.
    """
    leads = reach(heavy, lambda n: n.all_input_nodes)
    again = reach(heavy & reach(late, lambda n: n.users), lambda n: n.users)
    last = reach([n for n in late if n not in leads], lambda n: n.users)
    behind = reach(late, lambda n: n.users) - {graph.output}
    host = {n for n in behind if n in needed or not (n in leads or (n in again and n not in last))}
    while True:
        read = {x for n in (*host, graph.output) for x in n.all_input_nodes}
        # only floats leave the accelerator, and only what it computes: the host makes conditions, and what passes on
        conditions = {
            x for x in read - host
            if x.op == "call_function" and x in graph.dependent and x not in before
            and (dtype_of(x) != torch.float32 or _passes(x, graph, host))
        }  # fmt: skip
        if not conditions:
            break
        host |= conditions
        behind |= reach(conditions, lambda n: n.users) - {graph.output}
    middle = host & reach(behind - host, lambda n: n.all_input_nodes)
    return host - middle, middle


def _number_turns(graph: ExportedGraph, regions: Regions, needed: dict[Node, str], middle: set[Node]) -> None:
    """Puts each host operation of the middle behind the first call that has all it needs."""
    turns: dict[Node, int] = {}
    for node in graph.calls:
        if node in regions.before or node in regions.folded or node not in graph.dependent:
            continue
        sources = [x for x in node.all_input_nodes if x in turns]
        step = [turns[x] + (node in middle and x not in middle) for x in sources]
        turns[node] = max(step, default=int(node in middle))
    regions.between = [{} for _ in range(max(turns[n] for n in middle))]
    for node in (n for n in graph.calls if n in middle):
        regions.between[turns[node] - 1][node] = needed.get(node, "an operation on the host needs it")
    fed = [x for n in middle for x in n.all_input_nodes if x not in graph.dependent]
    constant = reach(fed, lambda n: n.all_input_nodes)
    for node in graph.calls:
        if node in constant and node not in regions.folded:
            regions.before.setdefault(node, "an operation on the host needs it")


def _refuse_nothing(graph: ExportedGraph, regions: Regions, model: str) -> None:
    """There must be something left for the accelerator."""
    host = {*regions.before, *regions.after, *regions.middle}
    left = [n for n in graph.calls if n in graph.dependent and n not in host]
    if not any(op_name(n) not in _VIEWS and dtype_of(n) == torch.float32 for n in left):
        first = next(iter({**regions.before, **regions.after}), None)
        what = f"{origin_of(first).operation()} and all else in the model" if first is not None else "all of the model"
        raise PenstockError(
            code="nothing-to-accelerate",
            what=f"{what} would run on the host",
            where=model,
            limit="look-ups, selections and integers run on the host, arithmetic on float32 on the accelerator",
            hint="compile the part of the model that computes with floats",
        )


def refuse_double_precision(program: ExportedProgram, model: str) -> None:
    """Of the accelerator's graph, once the host's part is cut off; what is only cast there and back goes away."""
    graph = ExportedGraph(program)
    for node in graph.calls:
        kinds = {dtype_of(x) for x in (node, *node.all_input_nodes)}
        if torch.float64 in kinds and node in graph.dependent and op_name(node) not in _VIEWS | _CASTS:
            origin = origin_of(node)
            raise PenstockError(
                code="unsupported-dtype", what=f"{origin.operation()} computes in float64",
                where=origin.describe(model), limit="what is computed inside a model is float32",
                hint="leave out the cast: .double(), dtype=torch.float64, or a tensor that numpy made",
            )  # fmt: skip
