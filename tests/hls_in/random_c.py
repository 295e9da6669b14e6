"""Random kernels of integers: every type and width, casts, choices, shifts, functions, conditions, one or two loops.

Nothing in them is undefined in C++: products are of few bits, divisors above 0, shifts by less than a type's bits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

TYPES = (
    "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "int", "unsigned",
    "short", "ap_int<5>", "ap_uint<9>", "ap_int<13>", "ap_uint<33>", "ap_uint<1>", "bool",
)  # fmt: skip
ARRAYS = TYPES[:14]
NUMBERS = (0, 1, 2, 3, 5, 7, -1, -2, 13, 100, 255, -128, 1000, 65535)
TABLE = "static const int table[8] = {1, -2, 3, 40, -500, 6, 7, -8};"


@dataclass(frozen=True)
class Known:
    """What statements may name."""

    numbers: tuple[str, ...]
    arrays: tuple[str, ...]
    written: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    loops: bool = True


@dataclass
class KernelMaker:
    chance: random.Random
    functions: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])
    names: int = 0

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def index(self, known: Known) -> str:
        if known.counters and self.chance.random() < 0.7:
            return self.chance.choice(known.counters)
        return str(self.chance.randint(0, 7))

    def leaf(self, known: Known) -> str:
        kind = self.chance.random()
        if kind < 0.6 and known.numbers:
            return self.chance.choice(known.numbers)
        if kind < 0.8:
            return str(self.chance.choice(NUMBERS))
        return f"{self.chance.choice(known.arrays)}[{self.index(known)}]"

    def number(self, known: Known, deep: int) -> str:
        """An expression, converted to int where it matters how wide it is."""
        chance = self.chance
        if deep <= 0 or chance.random() < 0.2:
            return self.leaf(known)

        def one() -> str:
            return self.number(known, deep - 1)

        match chance.choice("sssbblrcctuand" + "f" * bool(self.functions)):
            case "s":
                return f"((int64_t)(int)({one()}) {chance.choice('+-')} (int)({one()}))"
            case "b":
                return f"({one()} {chance.choice('&|^')} {one()})"
            case "l":
                return f"((int64_t)(uint16_t)({one()}) << {chance.randint(0, 7)})"
            case "r":
                return f"((int)({one()}) >> {chance.randint(0, 7)})"
            case "c":
                return f"({one()} {chance.choice(['<', '>', '<=', '>=', '==', '!='])} {one()})"
            case "t":
                return f"((int)({one()}) ? (int)({one()}) : (int)({one()}))"
            case "u":
                return f"(({chance.choice(TYPES)})({one()}))"
            case "a":
                return f"((int8_t)({one()}) * (int16_t)({one()}))"
            case "n":
                return f"({chance.choice(['-(int64_t)', '~', '!'])}(int)({one()}))"
            case "d":
                return f"((int64_t)({one()}) {chance.choice('/%')} (((int)({one()}) & 15) + 1))"
            case _:
                name, types = chance.choice(self.functions)
                return f"{name}({', '.join(f'({t})({one()})' for t in types)})"

    def statements(self, known: Known, deep: int, count: int) -> str:
        found: list[str] = []
        for _ in range(count):
            kind = self.chance.random()
            if kind < 0.3:
                name = self.name()
                found.append(f"{self.chance.choice(TYPES)} {name} = {self.number(known, 3)};")
                known = replace(known, numbers=(*known.numbers, name), changed=(*known.changed, name))
            elif kind < 0.5 and known.changed:
                sign = self.chance.choice(["=", "=", "&=", "|=", "^="])
                found.append(f"{self.chance.choice(known.changed)} {sign} {self.number(known, 3)};")
            elif kind < 0.75 and known.written:
                sign = self.chance.choice(["=", "=", "^=", "|="])
                target = f"{self.chance.choice(known.written)}[{self.index(known)}]"
                found.append(f"{target} {sign} {self.number(known, 3)};")
            elif kind < 0.88 and deep:
                inside = replace(known, loops=False)
                yes, no = (self.statements(inside, deep - 1, self.chance.randint(1, 3)) for _ in range(2))
                found.append(f"if ({self.number(known, 2)}) {{\n{yes}\n}} else {{\n{no}\n}}")
            elif deep and known.loops and len(known.counters) < 2:
                at = self.name()
                inside = replace(known, counters=(*known.counters, at))
                body = self.statements(inside, deep - 1, self.chance.randint(1, 4))
                found.append(f"for (int {at} = 0; {at} < 8; {at}++) {{\n{body}\n}}")
        return "\n".join(found)

    def function(self, name: str) -> str:
        types = [self.chance.choice(TYPES) for _ in range(self.chance.randint(1, 3))]
        names = tuple(f"p{at}" for at in range(len(types)))
        known = Known(names, ("table",), changed=names, loops=False)
        body = self.statements(known, 1, self.chance.randint(0, 3))
        given = ", ".join(f"{type_} {one}" for type_, one in zip(types, names, strict=True))
        text = f"{TABLE}\n{body}\nreturn {self.number(known, 3)};"
        self.functions.append((name, types))
        return f"static {self.chance.choice(TYPES)} {name}({given}) {{\n{text}\n}}\n"

    def kernel(self) -> str:
        functions = "".join(self.function(f"f{at}") for at in range(self.chance.randint(0, 2)))
        a, b, out, own = (self.chance.choice(ARRAYS) for _ in range(4))
        known = Known(("s",), ("a", "b", "own"), ("out", "own"))
        body = self.statements(known, 3, self.chance.randint(3, 7))
        return f"""#include <stdint.h>
#include "ap_int.h"
{functions}void top(const {a} a[8], const {b} b[8], {out} out[8], {self.chance.choice(TYPES[:8])} s) {{
{own} own[8] = {{0}};
for (int z = 0; z < 8; z++) out[z] = 0;
{body}
for (int z = 0; z < 8; z++) out[z] ^= own[z];
}}
"""


def random_kernel(seed: int) -> str:
    return KernelMaker(random.Random(seed)).kernel()
