"""All that the nests of one task load from and store to, and what leaves them: gathered first, written at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.ir import OpResult, SSAValue

from penstock.compiler.analysis.banks import Dim, Geometry, access_of, accesses_of
from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.hazards import SharedUse, check_apart, check_order
from penstock.compiler.backend.rtl.lane_sv import LaneSpan
from penstock.compiler.backend.rtl.lines import SvLines, clog2, flat
from penstock.compiler.backend.rtl.memory_sv import AccessSite, bank_address, bank_signals, write_gather, write_scatter
from penstock.compiler.backend.rtl.nest_parts import NestParts
from penstock.compiler.backend.rtl.numbers import type_bits, type_range
from penstock.compiler.backend.rtl.ports import External
from penstock.compiler.backend.rtl.stages import LaneVector, wide
from penstock.compiler.backend.rtl.tables import Tables
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.directives import banks_of, storage_of
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import lane_shape, memref_type
from penstock.compiler.errors import PenstockError


@dataclass(frozen=True)
class _Load:
    use: SharedUse
    site: AccessSite
    raw: str
    """The signal of the banks' words."""
    now: bool
    enable: str


@dataclass(frozen=True)
class _Store:
    use: SharedUse
    site: AccessSite
    shape: tuple[int, ...]
    lane: str
    """A lane's text, its index as {}."""
    fire: str


@dataclass
class TaskMemories:
    """`declarations` and `out` are module text; `data` the contents of ROMs by file name."""

    task: str
    parameters: Mapping[str, Array]
    external: Mapping[SSAValue, External]
    names: Mapping[SSAValue, str]
    declarations: list[str] = field(default_factory=list[str])
    out: SvLines = field(default_factory=SvLines)
    data: dict[str, str] = field(default_factory=dict[str, str])
    loads: dict[SSAValue, list[_Load]] = field(default_factory=dict[SSAValue, list[_Load]])
    stores: dict[SSAValue, list[_Store]] = field(default_factory=dict[SSAValue, list[_Store]])
    offers: dict[str, list[tuple[SharedUse, str, str]]] = field(
        default_factory=dict[str, list[tuple[SharedUse, str, str]]]
    )
    words: dict[str, list[tuple[SharedUse, str, str, str]]] = field(
        default_factory=dict[str, list[tuple[SharedUse, str, str, str]]]
    )
    tables: Tables = field(init=False)
    geometries: dict[SSAValue, Geometry] = field(default_factory=dict[SSAValue, Geometry])

    def __post_init__(self) -> None:
        self.tables = Tables(self.task)

    def geometry(self, memory: SSAValue) -> Geometry:
        if memory not in self.geometries:
            assert isinstance(memory, OpResult)
            cuts = zip(nest.memory_shape(memory), banks_of(memory.op).cuts, strict=True)
            self.geometries[memory] = Geometry(tuple([Dim(size, cut.word, cut.banks) for size, cut in cuts]))
        return self.geometries[memory]

    # -- what nests ask for

    def offer(self, emitter: NestParts, op: nest.WriteOp, name: str, stage: int, flag: str | None) -> None:
        """A token on its way out."""
        value = emitter.values[op.value]
        token = emitter.stages.declare(emitter.stages.fresh(f"{name}_token"), value.bits, value.lanes)
        emitter.whole(op.value, stage, token)
        valid = emitter.stages.valid(stage)
        select = valid if flag is None else f"{valid} & {flag}"
        self.offers.setdefault(name, []).append((self._use(emitter, op, stage), select, token))

    def load(self, emitter: NestParts, op: nest.LoadOp, span: LaneSpan, fire: str) -> LaneVector:
        memory, (start, end) = op.memory, span
        if memory in self.external:
            return self._load_word(emitter, op, span, fire)
        if isinstance(memory.owner, stream.RomOp):
            return self._load_rom(emitter, op, memory.owner, span, fire)
        geometry, bits = self.geometry(memory), type_bits(op.result.type)
        name = self.names[memory]
        blocks = isinstance(memory.type, BlocksType)
        now = not blocks and (geometry.words == 1 or end == start)
        there = start if now else end
        if not now and end != start + 1:
            raise self._refuse(emitter, f"loads of {name} take {end - start} stages", "memories answer in one")
        site = emitter.addressing.site(
            geometry, geometry.place(access_of(op)), start, fire, emitter.stages.fresh(f"{name}_load")
        )
        raw = f"{name}_rdata"
        if not blocks:
            raw = emitter.stages.fresh(f"{name}_bank")
            emitter.stages.declare(raw, geometry.lanes * bits, geometry.banks)
        late = site if there == start else _delayed(emitter, geometry, site, start, there)
        shape = lane_shape(op.result)
        target = emitter.stages.fresh(f"{name}_now")
        emitter.stages.declare(target, bits, prod(shape))
        write_gather(emitter.out, geometry, late, shape, (raw, target), bits)
        use = self._use(emitter, op, start)
        self.loads.setdefault(memory, []).append(_Load(use, site, raw, now, emitter.stages.enable(start)))
        return LaneVector(target, shape, prod(shape), type_range(op.result.type), bits, there)

    def store(self, emitter: NestParts, op: nest.StoreOp, stage: int, fire: str) -> None:
        memory, name = op.memory, self.names[op.memory]
        value = emitter.values[op.value]
        if memory in self.external:
            word = emitter.stages.declare(emitter.stages.fresh(f"{name}_word"), value.bits, value.lanes)
            emitter.whole(op.value, stage, word)
            use, lanes = self._use(emitter, op, stage), self.external[memory].lanes
            for number, (port, address) in enumerate(self._word_addresses(emitter, op, stage)):
                piece = word if lanes == value.lanes else f"{word}[{_lanes(number, lanes)}]"
                self.words.setdefault(f"{port}_we", []).append((use, fire, address, piece))
            return
        geometry = self.geometry(memory)
        site = emitter.addressing.site(
            geometry, geometry.place(access_of(op)), stage, fire, emitter.stages.fresh(f"{name}_store")
        )
        lane = wide(value, "{}", value.at(stage, emitter.stages))
        use = self._use(emitter, op, stage)
        self.stores.setdefault(memory, []).append(_Store(use, site, lane_shape(op.value), lane, fire))

    # -- external memory and parameters

    def _word_addresses(self, emitter: NestParts, op: nest.LoadOp | nest.StoreOp, stage: int) -> list[tuple[str, str]]:
        """Every port that the access takes, with the word that it moves there."""
        external, name = self.external[op.memory], self.names[op.memory]
        linear, steps, width = external.corner(op), external.steps(op), clog2(external.words)
        text, most = emitter.loops.affine(linear.factors, linear.offset, f"{name}_at")
        if linear.constant is None:
            text = emitter.stages.later(text, 0, stage, clog2(most + 1))
        ports = external.names(name, self.sharing(op))
        return [
            (port, f"{width}'({text} + {step})" if step else text) for port, step in zip(ports, steps, strict=False)
        ]

    def sharing(self, op: nest.LoadOp | nest.StoreOp) -> list[nest.LoadOp | nest.StoreOp]:
        """The accesses of all tasks that go the same way at an external memory."""
        return [a for a in accesses_of(op.memory) if isinstance(a, type(op))]

    def _load_word(self, emitter: NestParts, op: nest.LoadOp, span: LaneSpan, fire: str) -> LaneVector:
        name, (start, end) = self.names[op.memory], span
        if end != start + 1:
            raise self._refuse(emitter, f"loads of {name} take {end - start} stages", "a memory port answers in one")
        ports = self._word_addresses(emitter, op, start)
        for port, address in ports:
            self.words.setdefault(f"{port}_re", []).append((self._use(emitter, op, start), fire, address, ""))
        shape, kind, width = lane_shape(op.result), type_range(op.result.type), type_bits(op.result.type)
        if len(ports) == 1:
            return LaneVector(f"{ports[0][0]}_rdata", shape, prod(shape), kind, width, end)
        target = emitter.stages.declare(emitter.stages.fresh(f"{name}_word"), width, prod(shape))
        lanes = self.external[op.memory].lanes
        for number, (port, _) in enumerate(ports):
            emitter.out.add(f"assign {target}[{_lanes(number, lanes)}] = {port}_rdata;")
        return LaneVector(target, shape, prod(shape), kind, width, end)

    def _load_rom(
        self, emitter: NestParts, op: nest.LoadOp, rom: stream.RomOp, span: LaneSpan, fire: str
    ) -> LaneVector:
        geometry, bits, shape = self.geometry(op.memory), type_bits(op.result.type), lane_shape(op.result)
        name, (start, end), stages = self.names[op.memory], span, emitter.stages
        label = stages.fresh(f"{name}_load")
        site = emitter.addressing.site(geometry, geometry.place(access_of(op)), start, fire, label)
        raw = stages.declare(stages.fresh(f"{name}_bank"), geometry.lanes * bits, geometry.banks)
        width = geometry.lanes * bits
        contents = rom_contents(geometry, self._array(rom), bits)
        there = end
        if geometry.words == 1:
            there = start
            for bank, (word,) in enumerate(contents):
                goal = f"{raw}[{bank}]" if geometry.banks > 1 else raw
                emitter.out.add(f"assign {goal} = {width}'h{word:x};")
        else:
            if end != start + 1:
                raise self._refuse(emitter, f"loads of {name} take {end - start} stages", "ROMs answer in one")
            kind = storage_of(rom).kind.data
            for bank, words in enumerate(contents):
                number = f"_{bank}" if geometry.banks > 1 else ""
                file = f"{self.task}_{name}{number}.hex"
                self.data[file] = "".join(f"{word:0{-(-width // 4)}x}\n" for word in words)
                index = [str(i) for i in np.unravel_index(bank, [d.banks for d in geometry.dims] or [1])]
                at = bank_address(geometry, site, index, clog2(geometry.words))
                goal = f"{raw}[{bank}]" if geometry.banks > 1 else raw
                emitter.out.add(
                    f'penstock_rom #(.WIDTH({width}), .WORDS({geometry.words}), .FILE("{file}"), '
                    f".BLOCK({int(kind == 'bram')})) {label}{number}_rom (.clk(clk), .re({stages.enable(start)}), "
                    f".raddr({at}), .rdata({goal}));"
                )
        late = _delayed(emitter, geometry, site, start, there)
        target = stages.declare(stages.fresh(f"{name}_now"), bits, prod(shape))
        write_gather(emitter.out, geometry, late, shape, (raw, target), bits)
        still = geometry.words == 1 and all(turn.isdigit() for turn in site.turns)
        return LaneVector(target, shape, prod(shape), type_range(op.result.type), bits, None if still else there)

    def _array(self, rom: stream.RomOp) -> Array:
        found = self.parameters.get(rom.parameter.data)
        if found is None:
            raise PenstockError(
                code="missing-parameter", what=f"no values for parameter {rom.parameter.data!r}", where=self.task,
                limit="it lies on the chip, so the hardware holds its values", hint="load the model with its weights",
            )  # fmt: skip
        return found.reshape(nest.memory_shape(rom.result))

    # -- the end

    def write(self) -> None:
        """Everything that the nests share."""
        for name, offers in self.offers.items():
            check_apart([use for use, _, _ in offers], name)
            self.out.add(f"assign {name}_tdata = {_choice([(s, t) for _, s, t in offers])};")
        for signal, words in self.words.items():
            name = signal[:-3]
            check_apart([use for use, *_ in words], name)
            self.out.add(f"assign {signal} = {' | '.join(f'({fire})' for _, fire, _, _ in words)};")
            self.out.add(f"assign {name}_addr = {_choice([(fire, address) for _, fire, address, _ in words])};")
            if signal.endswith("_we"):
                self.out.add(f"assign {name}_wdata = {_choice([(fire, word) for _, fire, _, word in words])};")
        for memory in [m for m in self.names if m in self.loads or m in self.stores]:
            if isinstance(memory.type, BlocksType):
                self._write_block_port(memory)
            else:
                self._write_memory(memory)

    def _write_block_port(self, memory: SSAValue) -> None:
        geometry, name = self.geometry(memory), self.names[memory]
        bits = type_bits(memref_type(memory.type.block).element_type) if isinstance(memory.type, BlocksType) else 0
        if stores := self.stores.get(memory):
            if len(stores) > 1:
                raise self._several(name, stores[0].use)
            (one,) = stores
            signals = (f"{name}_we", f"{name}_addr", f"{name}_wdata", f"{name}_store_bank")
            write_scatter(self.out, geometry, one.site, one.shape, signals, one.lane, bits)
        if loads := self.loads.get(memory):
            if len(loads) > 1:
                raise self._several(name, loads[0].use)
            (load,) = loads
            self.out.add(f"assign {name}_re = {load.enable};")
            self._addresses(geometry, load.site, f"{name}_addr", f"{name}_load_bank")

    def _addresses(self, geometry: Geometry, site: AccessSite, target: str, label: str) -> None:
        with self.out.lanes([d.banks for d in geometry.dims], label, "b") as index:
            at = bank_address(geometry, site, index, clog2(geometry.words))
            goal = f"{target}[{_flat_bank(geometry, index)}]" if geometry.banks > 1 else target
            self.out.add(f"assign {goal} = {at};")

    def _write_memory(self, memory: SSAValue) -> None:
        geometry, name = self.geometry(memory), self.names[memory]
        bits = type_bits(memref_type(memory).element_type)
        width = geometry.lanes * bits
        stores = self.stores.get(memory, [])
        loads = self.loads.get(memory, [])
        if not loads:
            return
        check_apart([s.use for s in stores], name)
        self.declarations += bank_signals(geometry, name, bits)
        parts: list[str] = []
        for number, one in enumerate(stores):
            part = name if len(stores) == 1 else f"{name}_by{number}"
            if part != name:
                self.declarations += bank_signals(geometry, part, bits)
                parts.append(part)
            signals = (f"{part}_we", f"{part}_waddr", f"{part}_wdata", f"{part}_store")
            write_scatter(self.out, geometry, one.site, one.shape, signals, one.lane, bits)
        if parts:
            fires = [one.fire for one in stores]
            self.out.add(f"assign {name}_we = {' | '.join(f'{p}_we' for p in parts)};")
            for signal in ("waddr", "wdata"):
                choices = [(fire, f"{p}_{signal}") for fire, p in zip(fires, parts, strict=True)]
                self.out.add(f"assign {name}_{signal} = {_choice(choices)};")
        elif not stores:
            self.out.add(f"assign {name}_we = '0;", f"assign {name}_waddr = '0;", f"assign {name}_wdata = '0;")
        for number, load in enumerate(loads):
            forward = check_order(load.use, [s.use for s in stores], name)
            self._banks(geometry, name, load, number, width, forward=forward)

    def _banks(self, geometry: Geometry, name: str, load: _Load, number: int, width: int, *, forward: bool) -> None:
        label = f"{name}_banks{number or ''}"
        with self.out.lanes([d.banks for d in geometry.dims], label, "b") as index:
            suffix = f"[{_flat_bank(geometry, index)}]" if geometry.banks > 1 else ""
            at = bank_address(geometry, load.site, index, clog2(geometry.words))
            self.out.add(
                f"penstock_ram #(.WIDTH({width}), .WORDS({geometry.words}), .FORWARD({int(forward)}), "
                f".ASYNC({int(load.now)})) ram (",
                f"  .clk(clk), .we({name}_we{suffix}), .waddr({name}_waddr{suffix}), .wdata({name}_wdata{suffix}),",
                f"  .re({load.enable}), .raddr({at}), .rdata({load.raw}{suffix}));",
            )

    def _use(self, emitter: NestParts, op: nest.LoadOp | nest.StoreOp | nest.WriteOp, stage: int) -> SharedUse:
        schedule = emitter.timing.schedule
        start, end = emitter.timing.spans[op]
        return SharedUse(emitter.op, op, stage, schedule.ii, emitter.stages.front, schedule.name, held=start == end)

    def _refuse(self, emitter: NestParts, what: str, limit: str) -> PenstockError:
        return PenstockError(
            code="unsupported-nest", what=what, where=emitter.timing.schedule.name, limit=limit,
            hint="use an operator library of the open route",
        )  # fmt: skip

    def _several(self, name: str, use: SharedUse) -> PenstockError:
        return PenstockError(
            code="unsupported-nest", what=f"block channel {name} is accessed several times an iteration",
            where=use.where, limit="a block has one port at each end", hint="report this defect of a pass",
        )  # fmt: skip


def _delayed(emitter: NestParts, geometry: Geometry, site: AccessSite, start: int, end: int) -> AccessSite:
    """The turns that a load needs again when its words are there."""
    turns = [
        t if t.isdigit() else emitter.stages.later(t, start, end, clog2(d.banks))
        for t, d in zip(site.turns, geometry.dims, strict=True)
    ]
    return AccessSite(site.place, site.word, turns, site.fire)


def rom_contents(geometry: Geometry, array: Array, bits: int) -> list[list[int]]:
    """The words of every bank, lane 0 lowest; beyond the array's end they are 0."""
    padded = np.zeros([d.words * d.banks * d.granule for d in geometry.dims], array.dtype)
    padded[tuple(slice(0, n) for n in array.shape)] = array
    split = padded.reshape([n for d in geometry.dims for n in (d.words, d.banks, d.granule)])
    rank = len(geometry.dims)
    ordered = split.transpose([3 * i + 1 for i in range(rank)] + [3 * i for i in range(rank)]
                              + [3 * i + 2 for i in range(rank)])  # fmt: skip
    rows = ordered.reshape(geometry.banks, geometry.words, geometry.lanes)
    if np.issubdtype(rows.dtype, np.floating):
        rows = rows.view(f"uint{rows.dtype.itemsize * 8}")
    mask = (1 << bits) - 1
    return [[sum((int(x) & mask) << (bits * i) for i, x in enumerate(word)) for word in bank] for bank in rows]


def _flat_bank(geometry: Geometry, index: list[str]) -> str:
    return flat([d.banks for d in geometry.dims], index)


def _lanes(number: int, lanes: int) -> str:
    """The lanes of a word among those of an access."""
    return str(number) if lanes == 1 else f"{number * lanes} +: {lanes}"


def _choice(options: list[tuple[str, str]]) -> str:
    """The text of the option whose condition holds; the last one else."""
    return "".join(f"({when}) ? {text} : " for when, text in options[:-1]) + options[-1][1]
