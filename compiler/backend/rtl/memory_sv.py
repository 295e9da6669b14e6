"""Memories of a task as SystemVerilog: banks with a write port each, and banks again for every load that is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.compiler.analysis.banks import BankPlace, Geometry, Linear
from penstock.compiler.backend.rtl.lines import SvLines, clog2, conjunction, flat, packed
from penstock.compiler.backend.rtl.loops import Loops
from penstock.compiler.backend.rtl.stages import PipelineStages


@dataclass(frozen=True)
class AccessSite:
    """One access in the stage in which it happens: signals for the word, and for the first bank in each dim."""

    place: Sequence[BankPlace]
    word: str
    """Linear over all dims; where the access wraps, banks before the turn are a word further."""
    turns: Sequence[str]
    """The first bank as text, a plain number where it never changes."""
    fire: str
    """When the access happens."""


@dataclass
class Addressing:
    """Makes sites: addresses are made in stage 0 and carried to the access's stage."""

    loops: Loops
    stages: PipelineStages
    wires: list[str] = field(default_factory=list[str])

    def site(self, geometry: Geometry, place: Sequence[BankPlace], stage: int, fire: str, label: str) -> AccessSite:
        size = len(self.loops.loops)
        linear = Linear((0,) * size, 0)
        turns: list[str] = []
        extra: list[str] = []
        for position, (dim, at, stride) in enumerate(zip(geometry.dims, place, geometry.strides, strict=True)):
            if at.corner is None:
                linear = linear.plus(at.word.times(stride))
                turns.append(self._turn(at.turn, stage, f"{label}_turn{position}"))
                continue
            corner, most = self._at(at.corner, stage, f"{label}_corner{position}")
            quotient = self._wire(f"{label}_word{position}", clog2(most // dim.banks + 1), f"{corner} / {dim.banks}")
            turns.append(self._wire(f"{label}_turn{position}", clog2(dim.banks), f"{corner} % {dim.banks}"))
            extra.append(quotient if stride == 1 else f"{quotient} * {stride}")
        word, most = self._at(linear, stage, f"{label}_at")
        if extra:
            kept = [] if linear.constant == 0 else [word]
            word = self._wire(f"{label}_sum", clog2(geometry.words), " + ".join([*kept, *extra]))
        return AccessSite(place, word, turns, fire)

    def _turn(self, turn: Linear, stage: int, label: str) -> str:
        return str(turn.constant) if turn.constant is not None else self._at(turn, stage, label)[0]

    def _at(self, linear: Linear, stage: int, label: str) -> tuple[str, int]:
        """A linear expression in a stage."""
        text, most = self.loops.affine(linear.factors, linear.offset, label)
        if linear.constant is not None:
            return text, most
        return self.stages.later(text, 0, stage, clog2(most + 1)), most

    def _wire(self, label: str, width: int, expression: str) -> str:
        name = self.stages.declare(self.stages.fresh(label), width)
        self.wires.append(f"assign {name} = {expression};")
        return name


def bank_address(geometry: Geometry, site: AccessSite, index: Sequence[str], width: int) -> str:
    """The word in the bank at `index`: one further in every dim in which the access wrapped before the bank."""
    text = site.word
    for dim, at, turn, stride, i in zip(geometry.dims, site.place, site.turns, geometry.strides, index, strict=True):
        if at.wraps and dim.banks > 1:
            text += f" + ({i} < {turn} ? {stride} : 0)"
    return text if text == site.word else f"{width}'({text})"


def wraps(geometry: Geometry, site: AccessSite) -> bool:
    return any(at.wraps and dim.banks > 1 for dim, at in zip(geometry.dims, site.place, strict=True))


def turned(turn: str, offset: str, banks: int) -> str:
    """The bank `offset` after the first."""
    if turn.isdigit() and offset.isdigit():
        return str((int(turn) + int(offset)) % banks)
    if turn == "0":
        return offset
    if offset == "0":
        return turn
    return f"({turn} + {offset} < {banks} ? {turn} + {offset} : {turn} + {offset} - {banks})"


def before(index: str, turn: str, banks: int) -> str:
    """How many banks after the first one the bank `index` is."""
    if turn == "0":
        return index
    if turn.isdigit() and index.isdigit():
        return str((int(index) - int(turn)) % banks)
    return f"({index} >= {turn} ? {index} - {turn} : {index} + {banks} - {turn})"


def write_gather(
    out: SvLines, geometry: Geometry, site: AccessSite, shape: Sequence[int], names: tuple[str, str], element_bits: int
) -> None:
    """From the banks' words to the lanes of a load: `names` are source and target."""
    source, target = names
    lanes = 1
    for extent in shape:
        lanes *= extent
    with out.lanes(shape, f"{target}_lane") as index:
        banks: list[str] = []
        inside: list[str] = []
        for dim, turn, i in zip(geometry.dims, site.turns, index, strict=True):
            granule = i if dim.granule == 1 else _divided(i, dim.granule)
            inside.append("0" if dim.granule == 1 else "0" if i == "0" else f"{i} % {dim.granule}")
            banks.append(turned(turn, granule, dim.banks))
        bank = flat([d.banks for d in geometry.dims], banks)
        lane = flat([d.granule for d in geometry.dims], inside)
        word = f"{source}[{bank}]" if geometry.banks > 1 else source
        piece = word if geometry.lanes == 1 else f"{word}[({lane}) * {element_bits} +: {element_bits}]"
        goal = f"{target}[{flat(shape, index)}]" if lanes > 1 else target
        out.add(f"assign {goal} = {piece};")


def _divided(index: str, granule: int) -> str:
    return "0" if index == "0" else f"{index} / {granule}"


def write_scatter(
    out: SvLines, geometry: Geometry, site: AccessSite, shape: Sequence[int], names: tuple[str, str, str, str],
    lane_text: str, element_bits: int,
) -> None:  # fmt: skip
    """From the lanes of a store to the banks: enables, addresses and words. `lane_text` is a lane, its index as {}."""
    we, address, words, label = names
    counts = [at.count for at in site.place]
    many = geometry.banks > 1
    with out.lanes([d.banks for d in geometry.dims], label, "b") as index:
        bank = flat([d.banks for d in geometry.dims], index)
        offsets = [before(i, t, d.banks) for i, t, d in zip(index, site.turns, geometry.dims, strict=True)]
        hits = [
            f"{offset} < {count}"
            for offset, count, dim in zip(offsets, counts, geometry.dims, strict=True)
            if count < dim.banks
        ]
        suffix = f"[{bank}]" if many else ""
        out.add(f"assign {we}{suffix} = {conjunction([site.fire, *(f'({h})' for h in hits)])};")
        width = clog2(geometry.words)
        out.add(f"assign {address}{suffix} = {bank_address(geometry, site, index, width)};")
        chosen = ["0" if count == 1 else offset for offset, count in zip(offsets, counts, strict=True)]
        with out.lanes([d.granule for d in geometry.dims], f"{label}_lane", "g") as inside:
            places = [
                c if g.granule == 1 else f"({c}) * {g.granule} + {i}" if c != "0" else i
                for c, g, i in zip(chosen, geometry.dims, inside, strict=True)
            ]
            lane = flat([d.granule for d in geometry.dims], inside)
            target = f"{words}{suffix}"
            if geometry.lanes > 1:
                target += f"[({lane}) * {element_bits} +: {element_bits}]"
            source = flat(shape, [f"({p})" if " " in p else p for p in places])
            out.add(f"assign {target} = {lane_text.replace('{}', source)};")


def bank_signals(geometry: Geometry, name: str, element_bits: int) -> list[str]:
    """Declarations of a write port to all banks."""
    width = geometry.lanes * element_bits
    banks = geometry.banks
    enables = f"[{banks - 1}:0] " if banks > 1 else ""
    return [
        f"logic {enables}{name}_we;",
        f"logic {packed(banks, clog2(geometry.words))} {name}_waddr;",
        f"logic {packed(banks, width)} {name}_wdata;",
    ]
