"""What the stand-in sees in the C++ that it is given: functions, pipelined loops, FIFOs, memories, and rough figures.

Structure is read off the text: names, trip counts, the II that a pragma asks for, depths and widths of FIFOs. How deep
a pipeline is and what it takes is a rough count of its operators, the same for the same text. A loop takes
II * (trips - 1) + depth - 1 cycles and a module two more, as csynth counts them in public reports.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_FUNCTION = re.compile(r"^(?:static |extern \"C\" )?void (\w+)\(([^)]*)\)\s*\{\n(.*?)^\}", re.M | re.S)
_FOR = re.compile(r"\s*(?:(\w+): )?for \(int (\w+) = 0; \2 < (\d+); \+\+\2\) \{")
_PIPELINE = re.compile(r"#pragma HLS PIPELINE II=(\d+)(?: style=(\w+))?")
_STREAM = re.compile(r"^ +hls::stream<(.*)> (\w+)(?:\(\"|\[(\d+)\];)", re.M)
_DEPTH = re.compile(r"#pragma HLS STREAM variable=(\w+) depth=(\d+)")
_BLOCKS = re.compile(r"^ +hls::stream_of_blocks<(\w+), (\d+)> (\w+);", re.M)
_ARRAY = re.compile(r"^ +([\w:<>, ]+?) (\w+)((?:\[\d+\])+)(?: = \{\})?;$", re.M)
_CALL = re.compile(r"^    (\w+)\(([^()]*)\);", re.M)
_OPERATOR = re.compile(r"\bpk::(\w+)|\bstd::(\w+)")
_PRODUCT = re.compile(r"[=(] ?\w+ \* \w+")
"""In a statement without its subscripts."""
_DSP = frozenset({"mul", "fma", "mac"})
_SLOW = {"exp": 12, "log": 12, "sqrt": 14, "tanh": 20, "erf": 20, "div": 10, "mul": 2}
_MEMORY_LATENCY = 64
_BITS = {"bool": 1, "int8_t": 8, "uint8_t": 8, "int16_t": 16, "int32_t": 32, "uint32_t": 32, "float": 32,
         "int64_t": 64, "double": 64}  # fmt: skip


@dataclass(frozen=True)
class Operator:
    kind: str
    lanes: int
    line: int


@dataclass
class Loop:
    """`ii` is None for a loop that is not pipelined; `inside` are the loops in it that could not be flattened."""

    name: str
    line: int
    trip: int
    ii: int | None = None
    style: str | None = None
    """How its pipeline is asked to wait."""
    depth: int = 1
    inside: list[Loop] = field(default_factory=list["Loop"])
    operators: list[Operator] = field(default_factory=list[Operator])

    @property
    def iteration(self) -> int:
        return sum(loop.latency + 2 for loop in self.inside) if self.inside else self.depth

    @property
    def latency(self) -> int:
        return self.ii * (self.trip - 1) + self.depth - 1 if self.ii is not None else self.trip * self.iteration


@dataclass(frozen=True)
class Fifo:
    name: str
    bits: int
    depth: int
    line: int

    @property
    def bram(self) -> int:
        """As csynth counts: one, however deep it is."""
        return 1 if self.depth >= 160 else 0

    @property
    def ff(self) -> int:
        return 68 if self.depth <= 2 else 95 if self.bram else 40


@dataclass(frozen=True)
class Memory:
    name: str
    bits: int
    words: int
    blocks: int
    line: int

    @property
    def bram(self) -> int:
        return self.blocks * (max(1, self.words // 512) if self.words > 128 else 0)


@dataclass
class Module:
    """One function. `latency` and `interval` are csynth's way to see them: streams overlap their tasks in full."""

    name: str
    line: int
    loops: list[Loop]
    calls: list[str]
    dataflow: bool
    fifos: list[Fifo]
    memories: list[Memory]
    latency: int = 0
    interval: int = 0
    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram: int = 0
    whole: Loop | None = None
    """The function as a pipeline: a pragma that stands in no loop. Loops in it are unrolled, and none is reported."""

    @property
    def pipelines(self) -> list[Loop]:
        return [*self.loops, *([self.whole] if self.whole else [])]

    @property
    def kind(self) -> str:
        return "dataflow" if self.dataflow else "no"


def modules_of(text: str, top: str, slow: Mapping[str, int]) -> list[Module]:
    """The functions that the top uses, callees first; `slow` multiplies the II of some."""
    bodies = {
        found[1]: (found[2], found[3], text[: found.start(3)].count("\n") + 1) for found in _FUNCTION.finditer(text)
    }
    modules: dict[str, Module] = {}

    def visit(name: str) -> None:
        parameters, body, line = bodies[name]
        calls = [callee for callee, _ in _CALL.findall(body) if callee in bodies]
        for callee in calls:
            if callee not in modules:
                visit(callee)
        pointers = re.findall(r"const [^*&]*\*(\w+)", parameters)
        modules[name] = _measured(_module(name, body, line, calls, pointers, text, slow.get(name, 1)), modules)

    visit(top)
    return list(modules.values())


def _module(
    name: str, body: str, line: int, calls: list[str], pointers: list[str], text: str, slower: int
) -> Module:  # fmt: skip
    depths = {fifo: int(depth) for fifo, depth in _DEPTH.findall(body)}

    def at(start: int) -> int:
        return line + body[:start].count("\n")

    fifos = [
        Fifo(name, _bits(found[1]), depths.get(found[2], 2), at(found.start()))
        for found in _STREAM.finditer(body)
        for name in ([f"{found[2]}_{i}" for i in range(int(found[3]))] if found[3] else [found[2]])
    ]
    memories = [_block(found, text, at(found.start())) for found in _BLOCKS.finditer(body)]
    for found in _ARRAY.finditer(body):
        if f"variable={found[2]} complete" not in body:
            words = math.prod(map(int, re.findall(r"\d+", found[3])))
            memories.append(Memory(found[2], _bits(found[1]), words, 1, at(found.start())))
    loops = list(_loops(body.split("\n"), line, pointers, slower))
    whole = loops.pop() if loops and not loops[-1].name else None
    return Module(name, line, loops, calls, "#pragma HLS DATAFLOW" in body, fifos, memories, whole=whole)


def _block(found: re.Match[str], text: str, line: int) -> Memory:
    """A channel of blocks: a buffer of several copies."""
    kind = re.search(rf"typedef ([\w:<>, ]+?) {found[1]}((?:\[\d+\])+);", text)
    words = math.prod(map(int, re.findall(r"\d+", kind[2]))) if kind else 1
    return Memory(found[3], _bits(kind[1]) if kind else 8, words, int(found[2]), line)


def _bits(scalar: str) -> int:
    vector = re.fullmatch(r"(?:const )?hls::vector<(.+), (\d+)>", scalar)
    if vector:
        return _bits(vector[1]) * int(vector[2])
    exact = re.search(r"ap_u?int<(\d+)>", scalar)
    return int(exact[1]) if exact else _BITS.get(scalar.strip(), 32)


@dataclass
class _Open:
    """A block of the text that is not closed yet: a loop, or something else (None)."""

    loop: Loop | None
    unrolled: int = 1
    plain: bool = True  # nothing but its one loop stands in it so far


def _loops(lines: list[str], first: int, pointers: list[str], slower: int) -> Iterator[Loop]:
    stack: list[_Open] = []
    counter = 0
    for number, line in enumerate(lines, first):
        text = line.strip()
        if found := _FOR.match(line):
            counter += 1
            stack.append(_Open(Loop(found[1] or f"VITIS_LOOP_{number}_{counter}", number, int(found[3]))))
        elif text.startswith("}"):
            closed = stack.pop() if stack else None
            if closed and closed.loop and (loop := _finished(closed, stack)):
                yield loop
            if text.endswith("{"):
                stack.append(_Open(None))
        elif pipeline := _PIPELINE.match(text):
            if not stack:
                stack.append(_Open(Loop("", number, 1)))
            if stack[-1].loop:
                stack[-1].loop.ii, stack[-1].loop.style = slower * int(pipeline[1]), pipeline[2]
        elif text == "#pragma HLS UNROLL" and stack and stack[-1].loop:
            stack[-1] = _Open(None, stack[-1].loop.trip)
        elif text and not text.startswith(("#", "//")):
            _statement(text, number, stack, pointers)
            if text.endswith("{"):
                stack.append(_Open(None))
    if stack and (whole := stack[0].loop):
        _deepen(whole)
        yield whole


def _statement(text: str, line: int, stack: list[_Open], pointers: list[str]) -> None:
    lanes = math.prod(block.unrolled for block in stack)
    pipeline = next((b.loop for b in reversed(stack) if b.loop and b.loop.ii is not None), None)
    if stack:
        stack[-1].plain = False
    if pipeline is None:
        return
    pipeline.operators += [Operator(a or b, lanes, line) for a, b in _OPERATOR.findall(text)]
    if _PRODUCT.search(re.sub(r"\[[^\[\]]*\]", "", text)):
        pipeline.operators.append(Operator("mul", lanes, line))
    if any(f"{name}[" in text for name in pointers):
        pipeline.operators.append(Operator("readreq", lanes, line))


def _finished(closed: _Open, stack: list[_Open]) -> Loop | None:
    """A loop that ends: counted, and flattened into the loop around it where that holds nothing else."""
    loop = closed.loop
    assert loop is not None
    if loop.ii is None and not loop.inside:
        return None
    if loop.ii is not None and loop.depth == 1:
        _deepen(loop)
    around = stack[-1] if stack else None
    if around is None or around.loop is None:
        return loop
    if around.plain and loop.ii is not None:
        outer = around.loop
        outer.name, outer.trip, outer.ii = f"{outer.name}_{loop.name}", outer.trip * loop.trip, loop.ii
        outer.depth, outer.operators = loop.depth, loop.operators
    else:
        around.loop.inside.append(loop)
    around.plain = False
    return None


def _deepen(loop: Loop) -> None:
    kinds = {operator.kind for operator in loop.operators}
    loop.depth = 2 + len(kinds) + sum(_SLOW.get(kind, 0) for kind in kinds - {"readreq"})
    loop.depth += _MEMORY_LATENCY if "readreq" in kinds else 0


def _measured(module: Module, known: Mapping[str, Module]) -> Module:
    callees = [known[name] for name in module.calls]
    own = sum(loop.latency + 2 for loop in module.pipelines)
    if module.dataflow:
        fill = sum(max((loop.depth for loop in c.pipelines), default=1) for c in callees)
        module.latency = max((c.latency for c in callees), default=0) + fill
        module.interval = max((c.latency for c in callees), default=0) + 1
    else:
        module.latency = max(1, own + sum(c.latency for c in callees))
        module.interval = module.latency + 1
    operators = [o for loop in module.pipelines for o in every_operator(loop)]
    module.lut = 40 + sum(24 * o.lanes for o in operators) + sum(c.lut for c in callees) + 30 * len(module.fifos)
    module.ff = 20 + sum(32 * o.lanes for o in operators) + sum(c.ff for c in callees)
    module.ff += sum(fifo.ff for fifo in module.fifos)
    module.dsp = sum(o.lanes for o in operators if o.kind in _DSP) + sum(c.dsp for c in callees)
    module.bram = sum(part.bram for part in (*module.fifos, *module.memories)) + sum(c.bram for c in callees)
    return module


def every_operator(loop: Loop) -> Iterator[Operator]:
    yield from loop.operators
    for inner in loop.inside:
        yield from every_operator(inner)
