"""What one run of a design costs beside time and area: energy, by the table in energy.toml, and external traffic.

All of it is `modelled`. Operations are the model's own, whatever the tiling; what tiling and streaming change is how
many bits move through memories, FIFOs and the device's pins, and how long the device leaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from xdsl.dialects import arith
from xdsl.ir import Operation

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.platforms import Platform
from penstock.compiler.platforms.toml_fields import Fields, parse_toml
from penstock.compiler.scalars.number_types import number_type
from penstock.compiler.scalars.operations import OPERATIONS, is_scalar_op
from penstock.profiling.bandwidth import external_bits
from penstock.profiling.network import TaskNetwork

_PICO = 1e-12


@dataclass(frozen=True)
class EnergyTable:
    """energy.toml: picojoules an operation or a bit."""

    technology: float
    fabric: float
    dsp: float
    static_uw_per_lut: float
    memory: Mapping[str, float]
    external: Mapping[str, float]
    operation: Mapping[str, float]

    def operation_pj(self, op: Operation) -> float:
        """One scalar operation of the model, on an FPGA of today; an index counts as 32 bits."""
        row = OPERATIONS.get(type(op))  # one without a row is refused by the operator library, with its layer
        number, kind = number_type(op.results[0].type), "other" if row is None else row.energy
        bits = 32 if number.name == "index" else number.bits
        if number.is_float:
            picojoules = self.operation[f"{'add' if kind == 'other' else kind}_f32"] * (bits / 32)
        else:
            picojoules = self.operation[f"{kind}_int8"] * (bits / 8) ** (2 if kind == "multiply" else 1)
        return picojoules * (self.dsp if kind == "multiply" else self.fabric) * self.technology


@dataclass(frozen=True)
class RunCost:
    """One run's traffic and the dynamic part of its energy; the device's leakage goes with time."""

    traffic_bytes: int
    dynamic_uj: float
    static_w: float

    def energy_uj(self, latency_us: float) -> float:
        return self.dynamic_uj + self.static_w * latency_us


@cache
def energy_table() -> EnergyTable:
    """The table as it lies beside this file."""
    fields = parse_toml(
        files("penstock.dse.evaluation").joinpath("energy.toml").read_text(), "energy.toml", "bad-energy-table"
    )
    table = EnergyTable(
        technology=fields.number("technology", above=0),
        fabric=fields.number("fabric", above=0),
        dsp=fields.number("dsp", above=0),
        static_uw_per_lut=fields.number("static_uw_per_lut", above=0),
        memory=_numbers(fields.table("memory"), ("lut", "block")),
        external=_numbers(fields.table("external"), ("hbm", "ddr", "other")),
        operation=_numbers(
            fields.table("operation"),
            ("add_int8", "multiply_int8", "add_f32", "multiply_f32", "divide_f32", "function_f32", "other_int8"),
        ),
    )
    fields.finish()
    return table


def operations_uj(graph: Graph) -> float:
    """What the model's own arithmetic takes, once a run."""
    table = energy_table()
    picojoules = 0.0
    for op in graph.operations:
        for inner in op.op.body.block.ops:
            if is_scalar_op(inner) and not isinstance(inner, arith.ConstantOp):
                picojoules += op.work * table.operation_pj(inner)
    return picojoules * _PICO * 1e6


def run_cost(network: TaskNetwork, platform: Platform, arithmetic_uj: float) -> RunCost:
    """What a scheduled design moves, and what that takes.

    Every memory of a nest is read or written once an iteration over its whole width; every token is pushed once and
    popped once.
    """
    table = energy_table()
    in_luts = in_blocks = pushed = 0
    external = external_bits(network)
    for task in network.tasks:
        for nest in task.nests:
            for memory in nest.memories:
                bits = nest.iterations * memory.shape.moved_bits
                if memory.kind in ("bram", "uram"):
                    in_blocks += bits
                else:
                    in_luts += bits
            for port in nest.ports:
                if port.kind != "external":
                    pushed += port.tokens * port.bits
    kinds = {memory.kind for memory in platform.memories}
    kind = "hbm" if "hbm" in kinds else "ddr" if "ddr" in kinds else "other"
    picojoules = (
        (in_luts + pushed) * table.memory["lut"] + in_blocks * table.memory["block"] + external * table.external[kind]
    )
    return RunCost(
        traffic_bytes=-(-external // 8),
        dynamic_uj=arithmetic_uj + picojoules * _PICO * 1e6,
        static_w=static_w(platform),
    )


def static_w(platform: Platform) -> float:
    """What a device leaks, whatever it does."""
    return sum(die.resources.lut for die in platform.dies) * energy_table().static_uw_per_lut * 1e-6


def _numbers(fields: Fields, names: tuple[str, ...]) -> dict[str, float]:
    found = {name: fields.number(name, above=0) for name in names}
    fields.finish()
    return found
