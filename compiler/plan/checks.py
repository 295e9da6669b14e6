"""What is wrong with a design, or with a graph whatever its design is, said by layer before anything is planned."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import BlockArgument

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.lengths import SizedGraph
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform
from penstock.compiler.schedule import check_bindings, load_library


def check_layers(design: Design, graph: Graph, sized: SizedGraph) -> None:
    wanted, given = set(graph.by_layer), set(design.kernels)
    if missing := sorted(wanted - given):
        raise PenstockError(
            code="bad-design", what="the design says nothing about this layer", where=missing[0],
            limit=f"{len(given)} of {len(wanted)} layers are described",
            hint="start from a design that `penstock compile` wrote for this model",
        )  # fmt: skip
    if unknown := sorted((given | set(design.groups)) - wanted):
        raise PenstockError(
            code="bad-design", what="the design describes a layer that the model does not have", where=unknown[0],
            limit="layers: " + ", ".join(sorted(wanted)), hint="is this the design of another model or quantisation?",
        )  # fmt: skip
    for operation in graph.operations if sized.lengths else ():
        _check_sizes(operation, design, sized)


def _check_sizes(operation: TensorOp, design: Design, sized: SizedGraph) -> None:
    """Along a dim whose size each call says every tile is whole, and lanes share it evenly, whatever the size."""
    kernel = design.kernels[operation.layer]
    walked = zip(kernel.tile, kernel.unroll, operation.trips, sized.grains_of(operation), strict=False)
    for dim, (tile, lanes, trip, part) in enumerate(walked):
        size = sized.of_loops(operation)[dim]
        wrong = f"{lanes} lanes" if part % lanes else f"a tile of {tile}" if part % tile and tile != trip else ""
        if size is not None and wrong:
            raise PenstockError(
                code="bad-design", what=f"{wrong} along dim {dim}, whose size is {size}", where=operation.layer,
                limit=f"each call's size is a multiple of {part}, and no more is known of it",
                hint=f"take lanes that divide {part}, and a tile that does or the whole of {trip}; or larger steps",
            )  # fmt: skip


def check_bindings_of(operation: TensorOp, design: Design, platform: Platform) -> None:
    """An operator may be built of what the library has for it, if the operation computes with it at all."""
    if bindings := design.kernels[operation.layer].bindings:
        library = load_library(platform.operators, design.clock_mhz)
        inner = (op for op in operation.op.body.block.ops if op.results and not isinstance(op, arith.ConstantOp))
        check_bindings(library, operation.layer, bindings, {op.name for op in inner})


def check_results(graph: Graph) -> None:
    """Every operation's result is read, and what the model returns is computed."""
    read = {source for node in graph.nodes for source in node.inputs} | set(graph.returned)
    for value in graph.returned:
        if isinstance(value, BlockArgument):
            raise PenstockError(
                code="unsupported-op", what="a result that no operation of the accelerator computes", where="@main",
                hint="return only values that the model computes from its inputs",
            )  # fmt: skip
    for operation in graph.operations:
        if operation.result not in read:
            raise PenstockError(code="not-canonical", what="its result is never used", where=operation.layer)
