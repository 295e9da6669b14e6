"""Descriptions of machines: TOML or MLIR in, a verified `df` module and its facts out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, Builtin, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from penstock.compiler.dialects import df
from penstock.compiler.errors import nearest
from penstock.compiler.mesh.machine import Machine, MeshMemory, MeshNetwork, MeshUnit, only, refused
from penstock.compiler.mesh.shipped import FOLDER, machine_names

MOST_BYTES = 1 << 18
_LARGEST = 1 << 50
_UNREAD = (ParseError, RecursionError, NotImplementedError)
"""What xDSL's parser ends with: the last where a map multiplies two dims or takes one modulo the other."""
_WORDS: Mapping[type, str] = {str: "a text", int: "a whole number", float: "a number"}
MeshKind = TypeVar("MeshKind")
_FIELDS = {
    "": {"name", "title", "clock_mhz", "dims", "unit", "core", "memory", "mux", "network"},
    "unit": {"name", "kind", "shape", "cycles", "start", "types"},
    "core": {"name", "over", "units"},
    "memory": {"name", "over", "bytes", "bandwidth", "interleaved"},
    "mux": {"name", "of", "to", "map"},
    "network": {"name", "of", "to", "map", "bandwidth", "start", "open"},
}


def load_machine(asked: str) -> Machine:
    """A shipped description by its name, or a file `.toml` or `.mlir`."""
    path = FOLDER / f"{asked}.toml" if asked in machine_names() else Path(asked)
    if not path.is_file():
        hint = nearest(asked, machine_names(), f"one of {', '.join(machine_names())}, or a file")
        raise refused(asked, "there is no such description", "", hint)
    if path.stat().st_size > MOST_BYTES:
        raise refused(asked, "the file is too long", f"at most {MOST_BYTES} bytes", "describe repeated parts by dims")
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise refused(asked, "the file is no text", "", "write TOML, or MLIR of the df dialect") from None
    return machine_of(module_of_text(text, asked) if path.suffix == ".mlir" else module_of_toml(text, asked))


def module_of_toml(text: str, where: str) -> ModuleOp:
    try:
        return _Builder(where, tomllib.loads(text)).module()
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise refused(where, f"this is not TOML: {error}", "", "compare with a shipped description") from None
    except VerifyException as error:
        raise refused(where, _short(error), "", "mend the description") from None


def module_of_text(text: str, where: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(df.DfDialect)
    try:
        module = Parser(context, text, where).parse_module()
        module.verify()
    except (*_UNREAD, VerifyException) as error:
        raise refused(where, _short(error), "", "compare with a shipped description, printed as MLIR") from None
    return module


def _short(error: Exception) -> str:
    """What an error of xDSL says, without the IR around it."""
    lines = [line.strip(" ^") for line in str(error).splitlines() if line.strip(" ^")]
    said = [line for line in lines if not line.startswith(("%", '"', "//"))]
    return (said or lines or ["not valid"])[-1][:300]


class _Builder:
    """TOML as operations; names become values."""

    def __init__(self, where: str, data: dict[str, Any]) -> None:
        self.where, self.data = where, data
        self.values: dict[str, SSAValue] = {}
        self.ops: list[Operation] = []

    def module(self) -> ModuleOp:
        self._known("", self.data)
        for name, size in self._table(self.data, "dims").items():
            self._add(name, df.SpatialDimOp(name, self._of(int, size, f"dim {name}")))
        for row in self._rows("unit"):
            kind = self._text(row, "kind")
            if kind not in df.UNITS:
                raise refused(self.where, f"unit {kind!r} is unknown", "", f"one of {', '.join(df.UNITS)}")
            shape = tuple(self._of(int, size, "shape") for size in self._list(row, "shape"))
            types = tuple(self._of(str, name, "types") for name in self._list(row, "types"))
            op = df.UNITS[kind](
                self._text(row, "name"), shape, self._number(row, "cycles"), self._number(row, "start", 0), types
            )
            self._add(self._text(row, "name"), op)
        for row in self._rows("core"):
            units = self._table(row, "units")
            counts = [self._of(int, count, "units") for count in units.values()]
            core = df.CoreOp(self._text(row, "name"), self._dims(row), [self._value(unit) for unit in units], counts)
            self._add(core.label.data, core)
        for row in self._rows("memory"):
            size, rate = self._of(int, row.get("bytes"), "bytes"), self._number(row, "bandwidth")
            memory = df.MeshMemoryOp(self._text(row, "name"), self._dims(row), size, rate, bool(row.get("interleaved")))
            self._add(memory.label.data, memory)
        for row in self._rows("mux"):
            self.ops.append(df.MuxOp(self._text(row, "name"), *self._ends(row), self._map(row)))
        for row in self._rows("network"):
            rate, start = self._number(row, "bandwidth"), self._number(row, "start", 0)
            link = df.InterconnectsOp(
                self._text(row, "name"), *self._ends(row), self._map(row), rate, start, bool(row.get("open"))
            )
            self.ops.append(link)
        module = ModuleOp(self.ops)
        module.attributes["df.name"] = StringAttr(self._text(self.data, "name"))
        module.attributes["df.title"] = StringAttr(str(self.data.get("title", self.where)))
        module.attributes["df.clock_mhz"] = df.number(self._number(self.data, "clock_mhz"))
        module.verify()
        return module

    def _add(self, name: str, op: Operation) -> None:
        if name in self.values:
            raise refused(self.where, f"{name!r} is there twice", "", "give every part a name of its own")
        self.ops.append(op)
        self.values[name] = op.results[0]

    def _value(self, name: object) -> SSAValue:
        if not isinstance(name, str) or name not in self.values:
            raise refused(self.where, f"{name!r} is nowhere described", "", nearest(str(name), self.values, "add it"))
        return self.values[name]

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        rows = [self._row(row, kind) for row in self._list(self.data, kind)]
        for row in rows:
            self._known(kind, row)
        return rows

    def _row(self, row: object, kind: str) -> dict[str, Any]:
        if not isinstance(row, dict):
            raise refused(self.where, f"{kind} is no list of tables", "", f"write [[{kind}]]")
        return cast(dict[str, Any], row)

    def _known(self, kind: str, row: Mapping[str, Any]) -> None:
        for name in row:
            if name not in _FIELDS[kind]:
                hint = nearest(name, _FIELDS[kind], f"known are {', '.join(sorted(_FIELDS[kind]))}")
                raise refused(self.where, f"{kind or 'the file'} has no field {name!r}", "", hint)

    def _dims(self, row: dict[str, Any]) -> list[SSAValue]:
        return [self._value(name) for name in self._list(row, "over")]

    def _ends(self, row: dict[str, Any]) -> tuple[SSAValue, SSAValue]:
        return self._value(row.get("of")), self._value(row.get("to"))

    def _map(self, row: dict[str, Any]) -> AffineMapAttr:
        text, context = self._text(row, "map"), Context()
        context.load_dialect(Builtin)
        try:
            found = Parser(context, f"affine_map<{text}>").parse_attribute()
        except _UNREAD:
            found = None
        if not isinstance(found, AffineMapAttr):
            raise refused(self.where, f"{text[:80]!r} is no affine map", "", "write (d0, d1) -> ((d0 + 1) mod 8, d1)")
        return found

    def _list(self, row: Mapping[str, Any], name: str) -> list[Any]:
        value = row.get(name, [])
        if not isinstance(value, list):
            raise refused(self.where, f"{name} is no list", "", f"write {name} = [...]")
        return cast(list[Any], value)

    def _table(self, row: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = row.get(name, {})
        if not isinstance(value, dict):
            raise refused(self.where, f"{name} is no table", "", f"write {name} = {{ ... }}")
        return cast(dict[str, Any], value)

    def _text(self, row: Mapping[str, Any], name: str) -> str:
        return self._of(str, row.get(name), name)

    def _number(self, row: Mapping[str, Any], name: str, default: float | None = None) -> float:
        value = row.get(name, default)
        return float(self._of(int if isinstance(value, int) else float, value, name))

    def _of(self, kind: type[MeshKind], value: object, name: str) -> MeshKind:
        if value is None:
            raise refused(self.where, f"{name} is missing", "", f"give {_WORDS[kind]}")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise refused(self.where, f"{name} is {value!r}"[:200], "", f"it must be {_WORDS[kind]}")
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise refused(self.where, f"{name} is too large", f"at most {_LARGEST:,}", "describe a part")
        return value


def _can_be_worked_out(expression: AffineExpr) -> bool:
    """Whether all that it divides by are numbers above 0."""
    match expression:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add | AffineBinaryOpKind.Mul, left, right):
            return _can_be_worked_out(left) and _can_be_worked_out(right)
        case AffineBinaryOpExpr(_, left, AffineConstantExpr() as by):
            return by.value > 0 and _can_be_worked_out(left)
        case AffineBinaryOpExpr():
            return False
        case _:
            return True


def machine_of(module: ModuleOp) -> Machine:
    """The facts of a module, checked as a whole."""
    attributes = module.attributes
    name = str(getattr(attributes.get("df.name"), "data", "of a file"))
    clock = attributes.get("df.clock_mhz")
    dims: dict[SSAValue, tuple[str, int]] = {}
    units: dict[SSAValue, MeshUnit] = {}
    parts: dict[SSAValue, str] = {}
    memories: dict[str, MeshMemory] = {}
    cores: dict[str, df.CoreOp] = {}
    muxes: dict[str, df.MuxOp] = {}
    networks: list[MeshNetwork] = []
    for op in module.ops:
        match op:
            case df.SpatialDimOp():
                dims[op.dim] = (op.label.data, op.size.value.data)
            case df.MatOp() | df.VecOp() | df.ScalarOp():
                kind = op.name.removeprefix("df.")
                rate, start = op.cycles.value.data, op.start.value.data
                units[op.unit] = MeshUnit(op.label.data, kind, op.dims(), rate, start, 1, op.number_types())
            case df.CoreOp():
                cores[op.label.data] = op
                parts[op.cores] = op.label.data
            case df.MeshMemoryOp():
                over = tuple(dims[dim][0] for dim in op.scaleout)
                rate, mixed = op.bandwidth.value.data, op.interleaved is not None
                memories[op.label.data] = MeshMemory(op.label.data, over, op.size.value.data, rate, mixed)
                parts[op.memories] = op.label.data
            case df.MuxOp():
                muxes[op.label.data] = op
            case df.InterconnectsOp():
                ends = parts[op.source], parts[op.target]
                rate, start = op.bandwidth.value.data, op.start.value.data
                networks.append(MeshNetwork(op.label.data, *ends, op.map.data, rate, start, op.open is not None))
            case _:
                raise refused(name, f"{op.name} is no part of a mesh", "", "use the operations of df")
    core = cores[only(list(cores), name, "kinds of cores")]
    mux = muxes[only(list(muxes), name, "muxes from cores to their scratchpads")]
    scratchpad = parts[mux.target]
    if parts[mux.source] != core.label.data or scratchpad not in memories:
        raise refused(name, f"mux {mux.label.data} does not lead from the cores to a memory", "", "let it")
    held = {core.label.data: len(core.scaleout)} | {memory.name: len(memory.dims) for memory in memories.values()}
    for label, ends, of in [
        (mux.label.data, (core.label.data, scratchpad), mux.map.data),
        *((network.name, (network.source, network.target), network.map) for network in networks),
    ]:
        if of.num_symbols or not all(map(_can_be_worked_out, of.results)):
            raise refused(name, f"the map of {label} cannot be worked out", "", "divide by numbers above 0 alone")
        if (of.num_dims, len(of.results)) != (held[ends[0]], held[ends[1]]):
            raise refused(
                name, f"the map of {label} takes {of.num_dims} dims to {len(of.results)}",
                f"{ends[0]} has {held[ends[0]]}, {ends[1]} has {held[ends[1]]}", "one result for each dim of its end",
            )  # fmt: skip
        if ends[0] == core.label.data and label != mux.label.data:
            raise refused(name, f"network {label} joins cores", "", "join their scratchpads")
    counts = [int(count) for count in core.counts.get_values()]
    clock_mhz = float(clock.value.data) if isinstance(clock, df.FloatAttr) else 1000.0
    if not 0 < clock_mhz < float("inf"):
        raise refused(name, f"clock_mhz is {clock_mhz:g}", "", "it must be more than 0")
    return Machine(
        name,
        str(getattr(attributes.get("df.title"), "data", name)),
        clock_mhz,
        dict(dims.values()),
        tuple(dims[dim][0] for dim in core.scaleout),
        tuple(replace(u, count=count) for u, count in zip((units[unit] for unit in core.scalein), counts, strict=True)),
        memories,
        scratchpad,
        mux.map.data,
        tuple(networks),
    )
