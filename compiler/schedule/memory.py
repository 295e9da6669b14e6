"""What memories and FIFOs cost, by exact geometry."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.platforms import Resources
from compiler.schedule.library import OperatorLibrary

# words x bits that one 18-kbit block can be
_BRAM18_SHAPES = ((16384, 1), (8192, 2), (4096, 4), (2048, 9), (1024, 18), (512, 36))


@dataclass(frozen=True)
class MemoryUse:
    """A memory as it will be built: `words` of `word_bits` (all lanes of one access)."""

    name: str
    words: int
    word_bits: int
    kind: str
    area: Resources

    @property
    def bits(self) -> int:
        return self.words * self.word_bits


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
    return MemoryUse(name, words, word_bits, kind, one * copies)


def bram18_count(words: int, word_bits: int, power_of_two_up_to: int = 8192) -> int:
    """18-kbit blocks for a memory; the tools round short memories up to a power of two words."""
    deep = 1 << (words - 1).bit_length() if words <= power_of_two_up_to else words
    return min(-(-deep // w) * -(-word_bits // b) for w, b in _BRAM18_SHAPES)


def fifo_area(library: OperatorLibrary, depth: int, bits: int) -> Resources:
    """What a FIFO of `depth` tokens of `bits` costs."""
    rules = library.fifo
    control = Resources(lut=rules.lut, ff=rules.ff)
    if depth <= rules.register_depth:
        return control + Resources(ff=depth * bits)
    if depth <= rules.shift_max_depth:
        return control + Resources(lut=bits * -(-depth // rules.shift_words), ff=bits)
    blocks = bram18_count(depth, bits, library.memory.bram_power_of_two_words)
    return control + Resources(ff=bits, bram18=blocks)
