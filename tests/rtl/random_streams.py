"""Random stream-level designs, as text: tasks of random nests, FIFOs and block channels of random depths.

Every channel carries a token a word, one a row, or a row at once as a block; a task has rounds of its own around or
inside the words of a row. Some tasks have two nests, some carry a product or a sum (an II above 1), some write in the
middle of a pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Grain = Literal["word", "row", "block"]


@dataclass(frozen=True)
class Wire:
    """A channel between two tasks."""

    name: str
    source: int
    target: int
    grain: Grain
    depth: int

    def kind(self, words: int) -> str:
        if self.grain == "block":
            return f"!stream.blocks<memref<{words}xi8>, count: {self.depth}>"
        return f"!stream.stream<vector<1xi8>, depth: {self.depth}>"

    def declaration(self, words: int) -> str:
        op = "blocks" if self.grain == "block" else "stream"
        return f'    %{self.name} = stream.{op} "{self.name}" : {self.kind(words)}'


@dataclass
class _Body:
    """The operations of one nest."""

    loops: int
    number: int
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def add(self, text: str) -> str:
        self.count += 1
        name = f"%v{self.number}_{self.count}"
        self.lines.append(f"        {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"        {text}")

    def address(self, result: str) -> str:
        dims = ", ".join(f"d{i}" for i in range(self.loops))
        return f"affine_map<({dims}) -> ({result})>"


def draw_design(seed: int) -> str:
    """A module at the stream level."""
    random = Random(f"streams/{seed}")
    rows, words = random.choice([(2, 3), (2, 4), (3, 4), (4, 2), (2, 8), (5, 6)])
    count = random.randint(2, 8)
    pairs = [(i, i + 1) for i in range(count - 1)]
    pairs += [(i, random.randint(i + 2, count - 1)) for i in range(count - 2) if random.random() < 0.3]
    wires = [
        Wire(f"c{number}_{a}_{b}", a, b, random.choices(("word", "row", "block"), (7, 2, 2))[0], _depth(random))
        for number, (a, b) in enumerate(pairs)
    ]
    plain = f"memref<{rows * words}xi8>"
    ends = [i for i in range(count) if all(wire.source != i for wire in wires)]
    names = ["x", *(f"y{i}" for i in ends)]
    kinds = ["input", *("output" for _ in ends)]
    arguments = ", ".join(f"%{name}: {plain}" for name in names)
    tasks = [_task(random, i, rows, words, wires, plain, i in ends) for i in range(count)]
    return "\n".join(
        [
            "builtin.module {",
            f'  "stream.top"() <{{sym_name = "top", argument_names = [{_quoted(names)}], '
            f"argument_kinds = [{_quoted(kinds)}], layouts = [{', '.join('unit' for _ in names)}]}}> ({{",
            f"  ^bb0({arguments}):",
            *(wire.declaration(words) for wire in wires),
            *tasks,
            "  }) : () -> ()",
            "}",
        ]
    )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _depth(random: Random) -> int:
    return random.choice([1, 1, 2, 2, 3, 4, 6, 10, 40])


def _task(random: Random, number: int, rows: int, words: int, wires: Sequence[Wire], plain: str, ends: bool) -> str:
    blocks = any(wire.grain == "block" and number in (wire.source, wire.target) for wire in wires)
    parts = [1, rows - 1] if random.random() < 0.25 and not blocks else [rows]  # a block has one nest at each end
    buffers: list[str] = []
    nests = [
        _nest(random, f"{number}_{part}", extent, sum(parts[:part]), words, wires, number, plain, ends, buffers)
        for part, extent in enumerate(parts)
    ]
    return "\n".join(
        [
            f'    "stream.task"() <{{sym_name = "t{number}", layer = "l{number}", group = #builtin.int<0>}}> ({{',
            *buffers,
            *nests,
            "    }) : () -> ()",
        ]
    )


def _nest(
    random: Random, name: str, rows: int, begun: int, words: int, wires: Sequence[Wire], number: int, plain: str,
    ends: bool, buffers: list[str],
) -> str:  # fmt: skip
    rounds, around = random.randint(1, 3), random.random() < 0.5
    own, word = (1, 2) if around else (2, 1)
    trips = [("r", rows), ("e", rounds), ("w", words)] if around else [("r", rows), ("w", words), ("e", rounds)]
    body = _Body(3, number * 100 + begun)
    values: list[str] = []
    reads = [wire for wire in wires if wire.target == number]
    writes = [wire for wire in wires if wire.source == number]
    blocks = any(wire.grain == "block" for wire in (*reads, *writes))
    for wire in reads:
        values.append(_read(body, wire, name, own, word, words, buffers))
    if not values:
        where = body.address(f"{words} * d0 + d{word} + {words * begun}")
        values.append(
            body.add(f'"nest.load"(%x) <{{address = {where}, when = #nest.when<>}}> : ({plain}) -> vector<1xi8>')
        )
    value = values[0]
    for other in values[1:]:
        value = _combine(body, "addi", value, other)
    early = value
    for _ in range(random.randint(0, 3)):
        value = _combine(body, random.choice(["muli", "muli", "addi"]), value, random.choice([*values, value]))
    if random.random() < 0.25:
        value = _carry(body, name, value, random.choice(["muli", "addi"]), buffers)
    for wire in writes:
        _write(body, wire, random.choice([value, value, early]), own, word, rounds, words)
    if ends:
        where = body.address(f"{words} * d0 + d{word} + {words * begun}")
        body.do(
            f'"nest.store"({value}, %y{number}) <{{address = {where}, when = #nest.when<d{own} eq {rounds - 1}>}}> '
            f": (vector<1xi8>, {plain}) -> ()"
        )
    loops = ", ".join(f"{label}: {trip}" for label, trip in trips)
    return "\n".join(
        [
            f'      "nest.nest"() <{{sym_name = "n{name}", loops = #nest.loops<{loops}>, '
            f"block_loops = #builtin.int<{int(blocks)}>}}> ({{",
            *body.lines,
            "      }) : () -> ()",
        ]
    )


def _read(body: _Body, wire: Wire, name: str, own: int, word: int, words: int, buffers: list[str]) -> str:
    """A word of this iteration; what was read before is kept until it is used for the last time."""
    kind = wire.kind(words)
    if wire.grain == "block":
        where = body.address(f"d{word}")
        return body.add(
            f'"nest.load"(%{wire.name}) <{{address = {where}, when = #nest.when<>}}> : ({kind}) -> vector<1xi8>'
        )
    terms = [f"d{own} eq 0"] + ([f"d{word} eq 0"] if wire.grain == "row" else [])
    when, keep = f"#nest.when<{', '.join(terms)}>", f"%k{name}_{wire.name}"
    # with the rounds around the words, each word is kept for itself
    extent, at = (words, f"d{word}") if wire.grain == "word" and own < word else (1, "0")
    buffers.append(f'      {keep} = stream.buffer "k{name}_{wire.name}" : memref<{extent}xi8>')
    fresh = body.add(f'"nest.read"(%{wire.name}) <{{when = {when}}}> : ({kind}) -> vector<1xi8>')
    where = body.address(at)
    old = body.add(
        f'"nest.load"({keep}) <{{address = {where}, when = #nest.when<>}}> : (memref<{extent}xi8>) -> vector<1xi8>'
    )
    value = body.add(
        f'"nest.select"({fresh}, {old}) <{{when = {when}}}> : (vector<1xi8>, vector<1xi8>) -> vector<1xi8>'
    )
    body.do(
        f'"nest.store"({fresh}, {keep}) <{{address = {where}, when = {when}}}> '
        f": (vector<1xi8>, memref<{extent}xi8>) -> ()"
    )
    return value


def _combine(body: _Body, op: str, left: str, right: str) -> str:
    lane = "affine_map<(d0) -> (d0)>"
    body.count += 1
    name = f"%v{body.number}_{body.count}"
    body.lines += [
        f'        {name} = "nest.map"({left}, {right}) <{{lanes = [{lane}, {lane}]}}> ({{',
        f"        ^bb0({name}l: i8, {name}r: i8):",
        f"          {name}o = arith.{op} {name}l, {name}r : i8",
        f"          nest.yield {name}o : i8",
        "        }) : (vector<1xi8>, vector<1xi8>) -> vector<1xi8>",
    ]
    return name


def _carry(body: _Body, name: str, value: str, op: str, buffers: list[str]) -> str:
    """A running product or sum of a row."""
    buffers.append(f'      %a{name} = stream.buffer "a{name}" : memref<1xi8>')
    where, first = body.address("0"), "#nest.when<d1 eq 0, d2 eq 0>"
    one = body.add('"nest.constant"() <{value = 1 : i8}> : () -> vector<1xi8>')
    old = body.add(
        f'"nest.load"(%a{name}) <{{address = {where}, when = #nest.when<>}}> : (memref<1xi8>) -> vector<1xi8>'
    )
    kept = body.add(f'"nest.select"({one}, {old}) <{{when = {first}}}> : (vector<1xi8>, vector<1xi8>) -> vector<1xi8>')
    result = _combine(body, op, kept, value)
    body.do(
        f'"nest.store"({result}, %a{name}) <{{address = {where}, when = #nest.when<>}}> '
        ": (vector<1xi8>, memref<1xi8>) -> ()"
    )
    return result


def _write(body: _Body, wire: Wire, value: str, own: int, word: int, rounds: int, words: int) -> None:
    kind = wire.kind(words)
    terms = [f"d{own} eq {rounds - 1}"]
    if wire.grain == "block":
        where = body.address(f"d{word}")
        body.do(
            f'"nest.store"({value}, %{wire.name}) <{{address = {where}, when = #nest.when<{terms[0]}>}}> '
            f": (vector<1xi8>, {kind}) -> ()"
        )
        return
    if wire.grain == "row":
        terms.append(f"d{word} eq {words - 1}")
    when = f"#nest.when<{', '.join(terms)}>"
    body.do(f'"nest.write"({value}, %{wire.name}) <{{when = {when}}}> : (vector<1xi8>, {kind}) -> ()')
