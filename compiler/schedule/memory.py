"""What memories and FIFOs cost, by exact geometry: every way in which one can be built, and the usual one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from penstock.compiler.pieces import pieces_of
from penstock.compiler.platforms import Family, Resources
from penstock.compiler.schedule.library import OperatorLibrary

MemoryKind = Literal["registers", "lutram", "srl", "bram", "uram"]

# words x bits that one 18-kbit block can be: UltraScale+'s RAMB18 and ECP5's DP16KD alike
_BRAM18_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))
URAM_WORDS, URAM_BITS = 4096, 72  # its one shape; it cannot be initialised
_FREE_MUX = 4  # LUTs whose words the slice's own multiplexers join
_MOST_REGISTER_WORDS = 8
_MOST_LUT_WORDS = 1024  # beyond, multiplexers cost more than the words


@dataclass(frozen=True)
class MemoryUse:
    """A memory as it will be built: `copies` times `words` of `word_bits` (all lanes of one access).

    The copies of a ping-pong buffer are its banks, those of a FIFO the pieces of its tokens; `area` is of all.
    """

    name: str
    words: int
    word_bits: int
    kind: str
    area: Resources
    rom: bool = False
    copies: int = 1

    @property
    def bits(self) -> int:
        return self.words * self.word_bits

    def blocks(self, family: Family) -> str:
        """The blocks as the device's family counts them."""
        return family.blocks(self.area.bram18, self.area.uram)


def build_memory(
    library: OperatorLibrary, name: str, words: int, word_bits: int, *, rom: bool = False, copies: int = 1
) -> MemoryUse:
    """Choose how the memory is built. `copies` are the banks of a ping-pong buffer, handed over whole."""
    rules = library.memory
    lut_limit = rules.lut_max_rom_words if rom else rules.lut_max_words
    if words == 1:
        kind, one = "registers", Resources(ff=0 if rom else word_bits)
    elif words <= lut_limit:
        kind, one = "lutram", Resources(lut=word_bits * -(-words // rules.lut_words) + 1)
    else:
        kind, one = "bram", Resources(bram18=bram18_count(words, word_bits, rules.bram_power_of_two_words))
    return MemoryUse(name, words, word_bits, kind, one * copies, rom, copies)


def memory_choices(
    library: OperatorLibrary, name: str, words: int, word_bits: int, *, rom: bool = False, copies: int = 1
) -> tuple[MemoryUse, ...]:
    """Every way to build the memory, the usual one first."""
    rules = library.memory
    usual = build_memory(library, name, words, word_bits, rom=rom, copies=copies)
    ways: dict[str, Resources] = {}
    if words > 1:
        if words <= _MOST_REGISTER_WORDS and not rom:
            ways["registers"] = Resources(ff=words * word_bits, lut=word_bits * -(-words // _FREE_MUX))
        if words <= _MOST_LUT_WORDS:
            ways["lutram"] = Resources(lut=_lut_memory(words, word_bits, rules.lut_words))
        ways["bram"] = Resources(bram18=bram18_count(words, word_bits, rules.bram_power_of_two_words))
        if not rom:
            ways["uram"] = Resources(uram=uram_count(words, word_bits))
    others = [replace(usual, kind=k, area=one * copies) for k, one in ways.items() if k != usual.kind]
    return (usual, *others)


def bram18_count(words: int, word_bits: int, power_of_two_up_to: int = 8192) -> int:
    """18-kbit blocks for a memory; the tools round short memories up to a power of two words."""
    deep = 1 << (words - 1).bit_length() if words <= power_of_two_up_to else words
    return min(-(-deep // w) * -(-word_bits // b) for w, b in _BRAM18_SHAPES)


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
    ways = _piece_choices(library, name, depth, pieces.lanes * element)
    return tuple(replace(way, area=way.area * pieces.count, copies=pieces.count) for way in ways)


def _piece_choices(library: OperatorLibrary, name: str, depth: int, bits: int) -> tuple[MemoryUse, ...]:
    """Every way to build one FIFO."""
    rules = library.fifo
    control = Resources(lut=rules.lut, ff=rules.ff)
    output = Resources(ff=bits)
    shifted: MemoryKind = "srl" if rules.register_depth else "lutram"  # ECP5's LUTs do not shift
    ways: dict[MemoryKind, Resources] = {}
    if depth <= max(rules.register_depth, _MOST_REGISTER_WORDS):
        mux = 0 if depth <= rules.register_depth else bits * -(-depth // _FREE_MUX)
        ways["registers"] = Resources(ff=depth * bits, lut=mux)
    if depth <= _MOST_LUT_WORDS:
        ways[shifted] = output + Resources(lut=_shift_memory(depth, bits, rules.shift_words))
    ways["bram"] = output + Resources(bram18=bram18_count(depth, bits, library.memory.bram_power_of_two_words))
    ways["uram"] = output + Resources(uram=uram_count(depth, bits))
    usual = "registers" if depth <= rules.register_depth else shifted if depth <= rules.shift_max_depth else "bram"
    order = sorted(ways, key=lambda kind: kind != usual)
    return tuple(MemoryUse(name, depth, bits, kind, control + ways[kind]) for kind in order)


def _lut_memory(words: int, bits: int, lut_words: int) -> int:
    deep = -(-words // lut_words)
    return bits * (deep + (-(-deep // _FREE_MUX) if deep > _FREE_MUX else 0)) + 1


def _shift_memory(depth: int, bits: int, lut_words: int) -> int:
    deep = -(-depth // lut_words)
    return bits * (deep + (-(-deep // _FREE_MUX) if deep > _FREE_MUX else 0))
