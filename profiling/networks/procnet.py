"""Reads procnet-1 files (docs/network.schema.json): designs as networks of processes, with RTL cycles if known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms.toml_fields import Fields
from penstock.compiler.schedule import PatternLevel, TokenPattern
from penstock.compiler.simulator.check import check_network, check_sequence
from penstock.compiler.simulator.network import (
    Channel,
    ChannelAccess,
    Direction,
    Item,
    MemoryPort,
    Network,
    Phase,
    Repeat,
    Sequence,
    SimulatedMemory,
    SimulatedProcess,
    StartControl,
)
from penstock.profiling.networks.guards import COMPARISONS, Guard, pattern_of

_CODE = "bad-procnet"
Arrays = dict[str, dict[str, list[str]]]
"""Of the processes' two lists of pipos: who names which."""


@dataclass(frozen=True)
class ProcNet:
    """One file: the network, and what the register-transfer level said of it."""

    name: str
    network: Network | Sequence
    rtl_cycles: int | None
    """None where nobody measured it, and where the design deadlocks in RTL too."""
    csynth_cycles: int | None
    expects_deadlock: bool = False


def read_procnet(path: Path) -> ProcNet:
    """The network of a file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(f"not readable: {error}", str(path)) from error
    return parse_procnet(text, path.name)


def parse_procnet(text: str, where: str) -> ProcNet:
    """The network of a procnet-1 text; everything that is wrong with it is named."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise PenstockError(
            code=_CODE, what=f"not readable as JSON: {error}", where=where, hint="correct it"
        ) from error
    if not isinstance(data, dict):
        raise _refused("not an object", where)
    raw = cast("dict[str, Any]", data)
    fields = Fields(raw, where, _CODE)
    schema, name = fields.text("schema"), fields.text("name")
    if schema != "procnet-1":
        raise _refused(f"schema {schema!r}", where, "known is procnet-1")
    rtl = None if raw.get("rtl_cycles") is None else fields.count("rtl_cycles", at_least=1)
    stuck = raw.get("expected") == "deadlock"
    if stuck and rtl is not None:
        raise _refused(f"rtl_cycles is {rtl}", where, 'a design whose "expected" is "deadlock" has none')
    csynth = None if raw.get("csynth_cycles") is None else fields.count("csynth_cycles")
    composition = fields.text("composition")
    if composition == "dataflow":
        network = _network(name, fields, where)
        check_network(network)
        _check_tokens(network, raw, where)
        return ProcNet(name, network, rtl, csynth, stuck)
    if composition == "sequential":
        sequence = _sequence(name, fields, raw, where)
        check_sequence(sequence)
        return ProcNet(name, sequence, rtl, csynth, stuck)
    raise _refused(f"composition {composition!r}", where, "known are dataflow and sequential")


def _network(name: str, fields: Fields, where: str) -> Network:
    arrays: Arrays = {"array_writes": {}, "array_reads": {}}
    processes = tuple(_process(item, arrays) for item in fields.tables("processes"))
    if not processes:
        raise _refused("no processes", where)
    met = {access.channel for process in processes for phase in process.phases for access in phase.accesses}
    channels = [_channel(item, arrays) for item in fields.tables("channels")]
    # what is declared and met by nobody holds nobody up
    kept = [c for c in channels if c.name in met or c.producers or c.consumers]
    memories = tuple(
        SimulatedMemory(
            item.text("name"), item.count("banks", at_least=1, default=1), item.number("bits_per_cycle", above=0),
            item.count("latency", default=0),
        )
        for item in fields.tables("memories")
    )  # fmt: skip
    ports = tuple(
        MemoryPort(
            item.text("name"), item.text("memory"), item.count("bank", default=0),
            item.count("width_bits", at_least=1), item.count("ahead", at_least=1, default=64),
        )
        for item in fields.tables("ports")
    )  # fmt: skip
    return Network(name, processes, tuple(kept), ports, memories)


def _channel(fields: Fields, arrays: Arrays) -> Channel:
    name, kind = fields.text("name"), fields.text("kind")
    depth = fields.count("depth", at_least=1, default=2 if kind == "pipo" else None)
    bits = fields.count("width_bits", at_least=1)
    if kind == "fifo":
        return Channel(name, "fifo", depth, bits * fields.count("lanes", at_least=1, default=1))
    if kind == "pipo":
        ends = [
            fields.texts(key) if fields.has(key) else tuple(arrays[way].get(name, ()))
            for key, way in (("producers", "array_writes"), ("consumers", "array_reads"))
        ]
        return Channel(name, "pipo", depth, bits, fields.count("words", at_least=1, default=1), *ends)
    raise _refused(f"kind {kind!r}", fields.where, "known are fifo and pipo")


def _process(fields: Fields, arrays: Arrays) -> SimulatedProcess:
    """Notes in `arrays` which pipos the process says that it meets."""
    name = fields.text("name")
    for way, met in arrays.items():
        for array in fields.texts(way) if fields.has(way) else ():
            met.setdefault(array, []).append(name)
    return SimulatedProcess(name, tuple(_phase(item) for item in fields.tables("phases")))


def _phase(fields: Fields) -> Phase:
    """A loop that is not pipelined begins an iteration when the one before it has left: its ii, if given, says less."""
    trips = tuple(loop.count("trip", at_least=1) for loop in fields.tables("loops"))
    depth = fields.count("depth", at_least=1)
    pipelined = fields.flag("pipelined") if fields.has("pipelined") else True
    ii = fields.count("ii", at_least=1) if pipelined else depth
    accesses = [_access(item, "read", trips) for item in fields.tables("reads")]
    accesses += [_access(item, "write", trips) for item in fields.tables("writes")]
    name = fields.text("name") if fields.has("name") else ""
    return Phase(trips, ii, depth, tuple(accesses), name, fields.flag("flushes") if fields.has("flushes") else None)


def _access(fields: Fields, direction: Direction, trips: tuple[int, ...]) -> ChannelAccess:
    stage = fields.count("stage", default=-1)
    if fields.has("levels"):
        pattern = TokenPattern(tuple(_level(item) for item in fields.tables("levels")))
    else:
        pattern = pattern_of(trips, [_term(item, len(trips)) for item in fields.tables("when")])
    return ChannelAccess(
        fields.text("channel"), direction, pattern, None if stage < 0 else stage,
        fields.count("per_iteration", at_least=1, default=1),
    )  # fmt: skip


def _level(fields: Fields) -> PatternLevel:
    runs = tuple((run.count("first"), run.count("length", at_least=1)) for run in fields.tables("runs"))
    return PatternLevel(runs, fields.count("stride", at_least=1))


def _term(fields: Fields, loops: int) -> Guard:
    loop, op, value = fields.count("loop"), fields.text("op"), fields.count("value", at_least=-(1 << 31))
    if loop >= loops:
        raise _refused(f"loop {loop}", fields.where, f"the phase has {loops} loops")
    if op not in COMPARISONS:
        raise _refused(f"op {op!r}", fields.where, "known are " + ", ".join(COMPARISONS))
    return Guard(
        loop, COMPARISONS[COMPARISONS.index(op)], value, fields.count("modulus", at_least=1) if op == "mod" else 1
    )


def _check_tokens(network: Network, raw: dict[str, Any], where: str) -> None:
    """The file's own count of each FIFO's tokens against what the guards come to."""
    counts = network.tokens()
    for item in raw.get("channels", []):
        stated = item.get("tokens_per_lane")
        if stated is not None and stated != counts.get(item["name"], 0):
            raise _refused(
                f"tokens_per_lane is {stated}", f"{where}: channel {item['name']!r}",
                f"the guards come to {counts.get(item['name'], 0)}",
            )  # fmt: skip


def _sequence(name: str, fields: Fields, raw: dict[str, Any], where: str) -> Sequence:
    steps = raw.get("steps")
    if not isinstance(steps, list) or not all(isinstance(step, list) for step in cast("list[Any]", steps)):
        raise _refused("field 'steps' is not a list of lists", where)
    items: list[tuple[Item, ...]] = []
    for number, step in enumerate(cast("list[list[Any]]", steps)):
        group = Fields({"items": step}, f"{where}: step {number}", _CODE)
        items.append(tuple(_item(item, entry) for item, entry in zip(group.tables("items"), step, strict=True)))
    control = fields.optional_table("control")
    if control is None:
        return Sequence(name, tuple(items))
    protocol = control.text("protocol")
    if protocol not in ("ap_ctrl_hs", "s_axilite"):
        raise _refused(f"protocol {protocol!r}", control.where, "known are ap_ctrl_hs and s_axilite")
    return Sequence(name, tuple(items), StartControl(protocol, control.count("scalar_registers", default=0)))


def _item(fields: Fields, entry: dict[str, Any]) -> Item:
    if "processes" in entry:
        network = _network(fields.text("name"), fields, fields.where)
        check_network(network)
        return network
    if "repeat" not in entry:
        return _phase(fields)
    return Repeat(
        fields.count("repeat", at_least=1), fields.count("iteration_latency", at_least=1),
        tuple(_phase(item) for item in fields.tables("body")),
    )  # fmt: skip


def _refused(what: str, where: str, limit: str = "") -> PenstockError:
    return PenstockError(code=_CODE, what=what, where=where, limit=limit, hint="correct the file")
