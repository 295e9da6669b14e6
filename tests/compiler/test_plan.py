"""A plan and the operations that it is written as say the same, and parts of any name have labels of their own."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from xdsl.ir import Region
from xdsl.printer import Printer

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.pipeline import lower
from penstock.compiler.plan.computations import KnownComputations
from penstock.compiler.plan.parts import Computing, Does, Loading, Order, Part, Storing, Transfer
from penstock.compiler.plan.planner import Plan, Planner
from penstock.compiler.plan.read import read_kernels
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.compiler.transforms.pad_dims import Dims, PadDims, pad_module
from tests.compiler.designs import designs, networks
from tests.compiler.graphs import Case, build_graph, cases, turned

RELAXED = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)


def described(part: Part) -> tuple[str, str, object, list[str], list[list[str]], int]:
    channels = [taken.channel for taken in part.inputs]
    ends = [[end.channel for end in made.ends()] for made in part.outputs]
    return part.name, part.label, content(part.does), channels, ends, len(part.tensors)


def content(does: Does) -> object:
    """What a part does, whichever table its orders are from."""
    match does:
        case Loading(transfer) | Storing(transfer):
            return type(does), of_transfer(transfer)
        case Computing():
            plain = (does.bindings, does.reread, does.tensors, does.plan.steps, does.plan.unroll)
            computed = does.computation
            body = [text(region) for region in (computed.body, computed.combine) if region is not None]
            orders = [order and order.kind for order in (*does.operands, does.result)]
            return plain, body, orders, computed.maps, computed.dtype, computed.init
        case _:
            fields = [getattr(does, name) for name in type(does).__slots__]
            return type(does), [of_order(one) for one in fields]


def of_order(value: object) -> object:
    if isinstance(value, tuple):
        return [of_order(one) for one in value]
    return value.kind if isinstance(value, Order) else value


def of_transfer(transfer: Transfer) -> tuple[object, ...]:
    return transfer.stream.kind, transfer.layout, transfer.through and transfer.through.kind, transfer.tensor


def text(region: Region) -> str:
    out = StringIO()
    Printer(stream=out).print_region(region)
    return out.getvalue()


def parts_of(plan: Plan) -> list[list[tuple[str, str, object, list[str], list[list[str]], int]]]:
    return [[described(part) for part in kernel.parts] for kernel in plan.kernels]


def check_written(program: Program, design: Design) -> None:
    lowered = lower(program, design)
    graph = read_graph(PadDims(design).run(program).module)
    planned = Planner(graph, load_platform(design.platform)).plan(design)
    kernels = [op for op in lowered.itensor.walk() if isinstance(op, itensor.KernelOp)]
    read = read_kernels(kernels, design, load_platform(design.platform))
    wanted = parts_of(planned)
    assert [[described(part) for part in parts] for parts in read] == wanted
    labels = {part.label for parts in read for part in parts}
    assert len(labels) == sum(len(parts) for parts in read), "no two parts share a label"
    channels = {end for parts in wanted for part in parts for ends in part[4] for end in ends}
    written = {op.sym_name.data for op in lowered.channels if isinstance(op, stream.StreamOp)}
    between = {name for name in written if not re.fullmatch(r"load_.*__(stripe\d+|words)", name)}  # not within a load
    assert between == channels


@settings(RELAXED, max_examples=40)
@given(case=cases())
def test_what_is_written_is_what_was_planned(case: Case) -> None:
    """Slices, concatenations, reshapes, groups, packed ports, parameters on the chip and streamed ones, any order."""
    program = build_graph(case.graph)
    design = turned(program, case.knobs)
    for platform, clock in (("u55c", 300.0), ("ecp5-85k", 50.0)):
        check_written(program, replace(design, platform=platform, clock_mhz=clock))


@settings(RELAXED, max_examples=15)
@given(data=st.data())
def test_a_planner_that_knows_other_designs_says_the_same(data: st.DataObject) -> None:
    """What was found for one design serves the next, and changes nothing of it."""
    module, board = data.draw(networks()).module, load_platform("u55c")
    graph = read_graph(module)
    known = Planner(graph, board)
    for design in [data.draw(designs(module)) for _ in range(3)]:
        again, anew = known.plan(design), Planner(graph, board).plan(design)
        assert parts_of(again) == parts_of(anew)


@settings(RELAXED, max_examples=15)
@given(data=st.data())
def test_planners_of_a_program_share_what_they_find(data: st.DataObject) -> None:
    """Equal layers of two graphs become the same object; what a planner says is what it says alone."""
    case = data.draw(cases())
    program, board = build_graph(case.graph), load_platform("u55c")
    design, shared = turned(program, case.knobs), KnownComputations()
    dims = Dims(read_graph(program.module))
    sizes = dims.padded(design)
    graphs = [dims.padded_graph(sizes), read_graph(pad_module(dims, sizes)) if sizes else dims.graph]
    plans = [Planner(graph, board, shared).plan(design) for graph in graphs]
    assert parts_of(plans[0]) == parts_of(plans[1]) == parts_of(Planner(graphs[0], board).plan(design))
    first, second = ([part.does for kernel in plan.kernels for part in kernel.parts] for plan in plans)
    for one, other in zip(first, second, strict=True):
        assert one is other or not isinstance(one, Computing)
