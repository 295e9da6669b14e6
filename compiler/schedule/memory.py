"""What memories and FIFOs cost, by exact geometry: every way in which one can be built, and the usual one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Literal

from penstock.compiler.analysis.banks import Access, Geometry, geometry_of
from penstock.compiler.pieces import pieces_of
from penstock.compiler.platforms import Family, Resources
from penstock.compiler.schedule.library import FifoRules, MemoryRules, OperatorLibrary

MemoryKind = Literal["registers", "lutram", "srl", "bram", "uram"]

# words x bits that one 18-kbit block can be: UltraScale+'s RAMB18 and ECP5's DP16KD alike
_BRAM18_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
_BOTH_HALVES = 36
URAM_WORDS, URAM_BITS = 4096, 72  # its one shape; it cannot be initialised
_FREE_MUX = 4  # LUTs whose words the slice's own multiplexers join
_MOST_REGISTER_WORDS = 8
_MOST_LUT_WORDS = 1024  # beyond, multiplexers cost more than the words


@dataclass(frozen=True)
class MemoryShape:
    """What is stored: `banks` memories of `words` words of `word_bits`, and how often a run of a task meets each.

    `moved_bits` is what the widest access moves at once, `gather_luts` what picks its lanes from several banks.
    """

    words: int
    word_bits: int
    banks: int = 1
    rom: bool = False
    loads: int = 1
    stores: int = 1
    moved_bits: int = 0
    gather_luts: int = 0

    @staticmethod
    def of(
        shape: Sequence[int], element_bits: int, accesses: Sequence[Access], *, rom: bool = False
    ) -> tuple[MemoryShape, Geometry]:
        """As the accesses ask for it, and how it is cut for that."""
        cut = geometry_of(shape, accesses, element_bits)
        loads = [a for a in accesses if not a.writes]
        lanes = {prod(a.lanes) for a in accesses}
        luts = sum(prod(a.lanes) * element_bits * _mux_luts(cut.choices(a)) for a in loads)
        found = MemoryShape(
            cut.words, cut.lanes * element_bits, cut.banks, rom, len(loads), len(accesses) - len(loads),
            max(lanes, default=1) * element_bits, luts,
        )  # fmt: skip
        return found, cut

    @property
    def bits(self) -> int:
        return self.banks * self.words * self.word_bits

    @property
    def needs_both_ports(self) -> bool:
        """Whether one port that reads and one that writes are too few, or, of a ROM, one that reads."""
        return self.loads > 1 or self.stores > 1

    def ports_of(self, kind: str) -> str:
        """What one bank serves in one slot; the two ends of a block channel meet different blocks."""
        if kind == "registers":
            return "any"
        if self.rom:
            return "rom_2p" if self.needs_both_ports else "rom_1p"
        return "ram_s2p" if not self.needs_both_ports else "ram_1wnr" if kind == "lutram" else "ram_t2p"


@dataclass(frozen=True)
class MemoryUse:
    """A memory as it will be built: `copies` times the shape, of one kind.

    The copies of a ping-pong buffer are its blocks, those of a FIFO the pieces of its tokens; `area` is of all.
    """

    name: str
    shape: MemoryShape
    kind: str
    area: Resources
    copies: int = 1

    @property
    def bits(self) -> int:
        return self.shape.bits

    def blocks(self, family: Family) -> str:
        """The blocks as the device's family counts them."""
        return family.blocks(self.area.bram18, self.area.uram)


def build_memory(library: OperatorLibrary, name: str, shape: MemoryShape, *, copies: int = 1) -> MemoryUse:
    """The memory as it is usually built. `copies` are the blocks of a ping-pong buffer, handed over whole."""
    return memory_choices(library, name, shape, copies=copies)[0]


def memory_choices(
    library: OperatorLibrary, name: str, shape: MemoryShape, *, copies: int = 1
) -> tuple[MemoryUse, ...]:
    """Every way to build the memory, the usual one first."""
    rules = library.memory
    if rules.own_modules and shape.words > 1:
        together = replace(shape, words=shape.words * copies)
        ways = _ways(library, together)
        kind = _usual(rules, together, ways)
        return (MemoryUse(name, shape, kind, ways[kind] + Resources(lut=shape.gather_luts), copies),)
    ways = _ways(library, shape)
    usual, gather = _usual(rules, shape, ways), Resources(lut=shape.gather_luts)
    order = sorted(ways, key=lambda kind: kind != usual)
    return tuple([MemoryUse(name, shape, kind, ways[kind] * copies + gather, copies) for kind in order])


def _usual(rules: MemoryRules, shape: MemoryShape, ways: Mapping[str, Resources]) -> str:
    lut_limit = rules.lut_max_rom_words if shape.rom else rules.lut_max_words
    return "registers" if shape.words == 1 else "lutram" if shape.words <= lut_limit and "lutram" in ways else "bram"


def _ways(library: OperatorLibrary, shape: MemoryShape) -> dict[str, Resources]:
    """Every kind that the memory can be, with all its banks once."""
    words, bits, banks, rules = shape.words, shape.word_bits, shape.banks, library.memory
    if words == 1:  # constants of one word are folded into what uses them
        return {"registers": Resources() if shape.rom else Resources(ff=bits) * banks}
    ways: dict[str, Resources] = {}
    each_load = max(1, shape.loads)
    if words <= _MOST_REGISTER_WORDS and not shape.rom:
        ways["registers"] = Resources(ff=words * bits, lut=bits * _mux_luts(words)) * banks
    if words <= _MOST_LUT_WORDS and (shape.stores <= 1 or rules.own_modules):
        ways["lutram"] = Resources(lut=_lut_memory(words, bits, rules.lut_words)) * (banks * each_load)
    both = shape.needs_both_ports and not rules.own_modules
    blocks = bram18_count(words, bits, rules.bram_power_of_two_words, both_ports=both)
    replicas = each_load if rules.own_modules else 1
    ways["bram"] = Resources(bram18=blocks) * (banks * replicas)
    if not shape.rom:
        ways["uram"] = Resources(uram=uram_count(words, bits)) * (banks * replicas)
    return ways


def bram18_count(words: int, word_bits: int, power_of_two_up_to: int = 8192, *, both_ports: bool = False) -> int:
    """18-kbit blocks for a memory; the tools round short memories up to a power of two words.

    A block has 36 bits only where one port reads and the other writes, or one alone reads.
    """
    deep = 1 << (words - 1).bit_length() if words <= power_of_two_up_to else words
    return min(-(-deep // w) * -(-word_bits // b) for w, b in _BRAM18_SHAPES if not (both_ports and b == _BOTH_HALVES))


def uram_count(words: int, word_bits: int) -> int:
    """288-kbit blocks of 4,096 words of 72 bits."""
    return -(-words // URAM_WORDS) * -(-word_bits // URAM_BITS)


def fifo_area(library: OperatorLibrary, depth: int, bits: int, lanes: int = 1) -> Resources:
    """What a FIFO of `depth` tokens of `bits` in `lanes` costs, built the usual way."""
    return fifo_choices(library, "", depth, bits, lanes)[0].area


def fifo_choices(library: OperatorLibrary, name: str, depth: int, bits: int, lanes: int = 1) -> tuple[MemoryUse, ...]:
    """Every way to build the FIFO of a channel, the usual one first: several FIFOs, where its tokens go in pieces."""
    element = bits // lanes
    pieces = pieces_of(lanes, element, library.fifo.widest_bits)
    return _named_choices(library.fifo, library.memory, name, depth, pieces.lanes * element, pieces.count)


@lru_cache(maxsize=1 << 15)
def _named_choices(
    rules: FifoRules, memory: MemoryRules, name: str, depth: int, bits: int, count: int
) -> tuple[MemoryUse, ...]:
    ways = _piece_choices(rules, memory, depth, bits, count)
    return tuple([MemoryUse(name, way.shape, way.kind, way.area, way.copies) for way in ways])


@lru_cache(maxsize=1 << 14)
def _piece_choices(rules: FifoRules, memory: MemoryRules, depth: int, bits: int, count: int) -> tuple[MemoryUse, ...]:
    """Every way to build so many FIFOs, which have no name yet: a search asks for a thousand a thousand times."""
    control = Resources(lut=rules.lut, ff=rules.ff)
    output = Resources(ff=bits)
    shifted: MemoryKind = "srl" if rules.register_depth else "lutram"  # ECP5's LUTs do not shift
    ways: dict[MemoryKind, Resources] = {}
    if depth <= max(rules.register_depth, _MOST_REGISTER_WORDS):
        mux = 0 if depth <= rules.register_depth else bits * _mux_luts(depth)
        ways["registers"] = Resources(ff=depth * bits, lut=mux)
    if depth <= _MOST_LUT_WORDS:
        ways[shifted] = output + Resources(lut=_shift_memory(depth, bits, rules.shift_words))
    ways["bram"] = output + Resources(bram18=bram18_count(depth, bits, memory.bram_power_of_two_words))
    ways["uram"] = output + Resources(uram=uram_count(depth, bits))
    usual: MemoryKind = "bram" if depth > rules.shift_max_depth else shifted
    usual = "registers" if depth <= rules.register_depth else usual
    order: list[MemoryKind] = sorted(ways, key=lambda kind: kind != usual)
    if memory.own_modules:
        order = [usual]
    shape = MemoryShape(depth, bits)
    return tuple([MemoryUse("", shape, kind, (control + ways[kind]) * count, count) for kind in order])


def _lut_memory(words: int, bits: int, lut_words: int) -> int:
    deep = -(-words // lut_words)
    return bits * (deep + (_mux_luts(deep) if deep > _FREE_MUX else 0)) + 1


def _shift_memory(depth: int, bits: int, lut_words: int) -> int:
    deep = -(-depth // lut_words)
    return bits * (deep + (_mux_luts(deep) if deep > _FREE_MUX else 0))


def _mux_luts(inputs: int) -> int:
    """LUTs for one bit of so many."""
    return -(-inputs // _FREE_MUX) if inputs > 1 else 0
