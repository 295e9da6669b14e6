"""What passes a port of external memory at once: no schedule lets an iteration move more than its port is wide."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from xdsl.ir import SSAValue

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.ports import stored_bits
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.directives import AxiAttr, BanksAttr, interfaces_of, word_of
from penstock.compiler.dialects.types import memref_type, vector_type
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.schedule import NestSchedule, load_library, schedule_nest
from tests.compiler.designs import Dense, build_network
from tests.schedule.gemms import OPEN, VITIS_300

ODD, EVEN = (7, 105, 63), (8, 64, 32)


def streamed(kind: str, rows: int, inputs: int, outputs: int) -> Lowered:
    """A layer whose weights come from external memory, as its input does and its output goes."""
    program = build_network(kind, rows, inputs, (Dense(outputs, False, False),), seed=1)
    design = default_design(read_graph(program.module), "u55c", 300.0)
    lanes = (1, outputs // 7, inputs // 7) if inputs % 7 == 0 else (1, 8, 16)
    kernel = replace(design.kernels["fc0"], weights="stream", tile=lanes, unroll=lanes)
    kernels = {**design.kernels, "fc0": kernel}
    return lower(program, replace(design, kernels=kernels))


def outside(lowered: Lowered, library: tuple[str, float]) -> list[tuple[int, int, NestSchedule]]:
    """Bits that an iteration of each load and store moves, the bits of its port, and its schedule."""
    top, found = lowered.top, list[tuple[int, int, NestSchedule]]()
    ports: dict[SSAValue, AxiAttr | BanksAttr] = dict(zip(top.body.block.args, interfaces_of(top), strict=True))
    for _, one in lowered.nests:
        for access in one.body.block.ops:
            if not isinstance(access, nest.LoadOp | nest.StoreOp) or access.memory not in ports:
                continue
            port = ports[access.memory]
            assert isinstance(port, AxiAttr)
            lanes = vector_type(access.result if isinstance(access, nest.LoadOp) else access.value)
            bits = prod(lanes.get_shape()) * stored_bits(lanes.element_type)
            found.append((bits, port.bits.data, schedule_nest(one, load_library(*library))))
    return found


@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("sizes", [ODD, EVEN], ids=["odd", "even"])
def test_no_iteration_moves_more_than_its_port_is_wide(kind: str, sizes: tuple[int, int, int]):
    found = outside(streamed(kind, *sizes), VITIS_300)
    assert len(found) == 3  # of input, weights and output
    assert all(bits <= width * schedule.ii for bits, width, schedule in found)


def test_odd_rows_pass_an_element_a_beat_and_say_so():
    """Vitis widens a port only to a power of two that divides all that lies in a row."""
    lowered = streamed("float32", *ODD)
    assert all(word_of(memref_type(value)) is None for value in lowered.top.body.block.args if value.first_use)
    found = outside(lowered, VITIS_300)
    for bits, width, schedule in found:
        assert width == 32
        assert schedule.ii == bits // width
    wide = [schedule for bits, width, schedule in found if bits > width]
    assert wide
    assert all(f"{one.ii} elements of" in one.ii_reason for one in wide)
    assert all(one.depth > one.ii for one in wide)  # what passes on has the last of them


def test_ports_of_the_open_route_are_as_wide_as_what_passes_at_once():
    assert all(schedule.ii == 1 for _, _, schedule in outside(streamed("float32", *ODD), OPEN))
