"""Published designs against the cycles that RTL co-simulation measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.networks import compare, find_data, summarise
from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import VITIS, simulate
from penstock.profiling.networks.procnet import parse_procnet, read_procnet

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "process-networks"
EXPECTED = {
    "streamhls__polybench__allo__atax": 8823,
    "streamhls__polybench__heterocl__atax": 29192,
    "streamhls__polybench__scalehls__gesummv": 6321,
    "streamhls__polybench__streamhls__2560_DSPs__opt3__atax": 33763,
    "streamhls__polybench__streamhls__2560_DSPs__opt4__atax": 2180,
    "streamhls__synthetic__opt5__k7mmseq_balanced": 5684,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_cycles_of_a_design_are_those_of_rtl_within_a_fifth_of_a_percent(name: str):
    design = read_procnet(SAMPLE / f"{name}.json")
    assert design.rtl_cycles is not None
    latency = simulate(design.network, VITIS).latency
    assert latency == EXPECTED[name]
    assert abs(latency - design.rtl_cycles) <= 0.002 * design.rtl_cycles


def test_the_summary_counts_what_is_there():
    rows = [compare(read_procnet(path)) for path in sorted(SAMPLE.glob("*.json"))]
    summary = summarise(rows)
    assert summary["n"] == len(EXPECTED)
    assert summary["deadlocks"] == 0
    assert 0 < float(summary["max_error_pct"] or 0) < 0.2


def test_a_folder_without_networks_is_refused(tmp_path: Path):
    with pytest.raises(PenstockError, match="no process networks"):
        find_data(tmp_path)


GOOD = SAMPLE / "streamhls__polybench__streamhls__2560_DSPs__opt4__atax.json"


def spoil(path: str, value: object) -> str:
    """The good file with one value replaced, or removed for `None`."""
    data = json.loads(GOOD.read_text())
    keys = [int(k) if k.isdigit() else k for k in path.split(".")]
    place = data
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("schema", "procnet-2", "schema 'procnet-2'"),
        ("name", None, "'name' is missing"),
        ("rtl_cycles", -3, "'rtl_cycles' is -3"),
        ("composition", "magic", "composition 'magic'"),
        ("channels", 7, "'channels' is 7"),
        ("channels.0.depth", 0, "'depth' is 0"),
        ("channels.0.kind", "pipe", "kind 'pipe'"),
        ("channels.0.tokens_per_lane", 3, "tokens_per_lane is 3"),
        ("channels.0.name", "other", "there is no channel|nobody writes it"),
        ("processes", [], "no processes"),
        ("processes.0.phases", [], "no phases"),
        ("processes.0.phases.0.ii", "two", "'ii' is 'two'"),
        ("processes.0.phases.0.depth", None, "'depth' is missing"),
        ("processes.0.phases.0.loops.0.trip", -1, "'trip' is -1"),
        ("processes.0.phases.0.pipelined", 1, "'pipelined' is 1"),
        ("processes.0.phases.0.loops", [{"trip": 3}], "puts|loop|tokens"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(path: str, value: object, message: str):
    with pytest.raises(PenstockError, match=message) as caught:
        parse_procnet(spoil(path, value), "design.json")
    assert caught.value.code in ("bad-procnet", "bad-network", "rates")
    assert caught.value.where


def minimal(**changes: object) -> str:
    """Two processes and a FIFO, with the least that the format asks for."""
    loops = [{"trip": 6}]
    processes = [
        {
            "name": "a",
            "phases": [{"loops": loops, "ii": 1, "depth": 3, "writes": [{"channel": "f", "per_iteration": 1}]}],
        },
        {
            "name": "b",
            "phases": [{"loops": loops, "ii": 2, "depth": 2, "reads": [{"channel": "f", "per_iteration": 1}]}],
        },
    ]
    data: dict[str, object] = {
        "schema": "procnet-1", "name": "minimal", "rtl_cycles": 20, "composition": "dataflow",
        "channels": [{"name": "f", "kind": "fifo", "depth": 6, "width_bits": 32}], "processes": processes,
    }  # fmt: skip
    return json.dumps(data | changes)


def test_the_least_that_the_format_asks_for_is_enough():
    design = parse_procnet(minimal(), "minimal.json")
    assert simulate(design.network, VITIS).latency == 3 + 5 * 2 + 1
    assert design.csynth_cycles is None


def test_pipos_are_found_from_either_side_and_unused_channels_do_no_harm():
    pipo = {"name": "p", "kind": "pipo", "depth": 2, "width_bits": 32, "words": 4}
    unused = {"name": "u", "kind": "fifo", "depth": 2, "width_bits": 8, "tokens_per_lane": 0}
    loops = [{"trip": 6}]
    a = {"name": "a", "array_writes": ["p"], "phases": [{"loops": loops, "ii": 1, "depth": 3}]}
    b = {"name": "b", "array_reads": ["p"], "phases": [{"loops": loops, "ii": 1, "depth": 3}]}
    named = parse_procnet(minimal(channels=[pipo, unused], processes=[a, b]), "named.json").network
    told = parse_procnet(
        minimal(channels=[pipo | {"producers": ["a"], "consumers": ["b"]}], processes=[a, b]), "told.json"
    ).network
    assert simulate(named, VITIS).latency == simulate(told, VITIS).latency == 8 + 1 + 8


def test_loops_that_are_not_pipelined_and_guards_of_every_kind_are_read():
    loops = [{"trip": 3}, {"trip": 4}]
    when = [
        {"loop": 1, "op": "mod", "value": 1, "modulus": 2}, {"loop": 0, "op": ">=", "value": -1},
        {"loop": 1, "op": "<=", "value": 9}, {"loop": 0, "op": "!=", "value": 1},
    ]  # fmt: skip
    phase = {"loops": loops, "pipelined": False, "ii": 1, "depth": 5}
    writes = [{"channel": "f", "per_iteration": 2, "when": when, "stage": 2}]
    a = {"name": "a", "phases": [phase | {"writes": writes}]}
    b = {"name": "b", "phases": [{"loops": [{"trip": 8}], "ii": 1, "depth": 2, "reads": [{"channel": "f"}]}]}
    channels = [{"name": "f", "kind": "fifo", "depth": 8, "width_bits": 32, "lanes": 4, "tokens_per_lane": 8}]
    network = parse_procnet(minimal(channels=channels, processes=[a, b]), "loops.json").network
    result = simulate(network, VITIS)
    assert result.processes["a"].end == 12 * 5
    assert result.channels["f"].first_write == 1 * 5 + 2


def test_sequences_of_loops_with_a_register_bus_add_up():
    """Rule 7: max of each step, 1 + 2 between, less the last cycle; 13 + 12 a register."""
    phase = {"loops": [{"trip": 10}], "pipelined": True, "ii": 1, "depth": 4}
    repeat = {"repeat": 3, "iteration_latency": 20, "body": [phase]}
    text = minimal(
        composition="sequential", steps=[[phase, phase], [repeat]],
        control={"protocol": "s_axilite", "scalar_registers": 2},
    )  # fmt: skip
    assert simulate(parse_procnet(text, "steps.json").network, VITIS).latency == 13 + 3 * 18 + 3 - 1 + 13 + 24


@pytest.mark.parametrize("text", ["", "[1]", "{", "null", '{"schema": "procnet-1"}', "\x00"])
def test_what_is_no_network_at_all_is_refused(text: str):
    with pytest.raises(PenstockError) as caught:
        parse_procnet(text, "design.json")
    assert caught.value.code == "bad-procnet"


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(PenstockError, match=r"nothing\.json"):
        read_procnet(tmp_path / "nothing.json")
