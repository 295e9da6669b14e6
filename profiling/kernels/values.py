"""Whether a kernel means the same at every level: its source, its nests, and the C++ that is written of them."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.backend.hls import emit_hls
from penstock.compiler.design import Design
from penstock.compiler.dialects import stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.arguments import KernelArgument
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import WHOLE_HEADERS
from penstock.compiler.hls_in.records import graphs
from penstock.compiler.hls_in.to_nests import KernelNests, nests_of_kernel
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.profiling.kernels.lengths import Lengths
from penstock.profiling.kernels.open_route import run_open_route
from penstock.profiling.kernels.program import KernelProgram, build_program
from penstock.profiling.kernels.structs import FieldProgram, joined
from penstock.profiling.tool_runner import ToolRunner

HEADERS = Path(__file__).parent / "include"
PLATFORM = "xcu280"
MOST_OPERATIONS = 2000
MOST_WRITTEN = 300
"""Operations of a kernel as SystemVerilog."""
_ANYTHING = 0.25
ValueLevel = Literal["interpreter", "emitted C++", "SystemVerilog"]


@dataclass(frozen=True)
class LevelValues:
    """How a level's results compare with the source's, bit for bit."""

    level: ValueLevel
    compared: int
    different: int
    first: str
    """Where the first difference is, and the two values."""
    seconds: float
    cycles: int | None = None
    """Of SystemVerilog: in Verilator, and by the simulator."""
    simulated_cycles: int | None = None

    @property
    def equal(self) -> bool:
        return self.different == 0 and self.cycles == self.simulated_cycles


@dataclass(frozen=True)
class ValueCheck:
    """A kernel compiled and run on random numbers, against its nests."""

    kernel: str
    top: str
    seed: int
    levels: tuple[LevelValues, ...]
    rolled: bool = False
    """Whether loops that pragmas unroll were left as loops, for the number of operations otherwise."""

    @property
    def equal(self) -> bool:
        return all(level.equal for level in self.levels)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "equal": self.equal}


def check_values(
    path: Path, top: str, clock_mhz: float = 300.0, *, seed: int = 0, sets: int = 1, out: Path | None = None,
    rtl: bool = False,
) -> ValueCheck:  # fmt: skip
    """Compile the source, its nests and their C++, and run them on the same sets of random numbers.

    The sets are those of `seed` and the numbers after it. `out` keeps the C++. With `rtl` their SystemVerilog is run
    on the first set too, and its cycles are held against the simulator's.
    """
    nests, rolled = kernel_nests(path, top, MOST_OPERATIONS)
    lengths = Lengths(read_kernel(path, top)).drawn(seed) or [{}]
    drawn = [
        random_memories(nests.arguments, seed + number, scalars=scalars)
        for number in range(sets) for scalars in lengths
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="penstock-kernel-") as scratch:
        work = Path(scratch)
        source = source_program(path, top, nests.arguments, work / "source")
        drawn[1:] = [one for one in drawn[1:] if len(lengths) == 1 or not uses_unwritten(
            path, top, nests.arguments, one, work / "unwritten"
        )]  # fmt: skip
        expected = [source.run(memories) for memories in drawn]
        levels: list[LevelValues] = []
        signed = [
            {one.name: _in_bits(one, memories[one.name], signed=True) for one in nests.arguments} for memories in drawn
        ]
        started = time.process_time()
        with _typed(path.name):
            found = [_interpreted(nests, memories, path.name) for memories in signed]
        levels.append(_compared("interpreter", nests, expected, found, started))
        started = time.process_time()
        folder = out if out is not None else work / "emitted"
        with _typed(path.name):
            emit_kernel(nests, path.name, clock_mhz, folder)
        emitted = emitted_program(nests, folder, work / "emitted-run")
        found = [emitted.run(memories) for memories in signed]
        levels.append(_compared("emitted C++", nests, expected, found, started))
    if rtl:
        started = time.process_time()
        written, written_rolled = kernel_nests(path, top, MOST_WRITTEN, apart=True)
        run = run_open_route(written, signed[0])
        rolled |= written_rolled
        compared = _compared("SystemVerilog", nests, expected[:1], [run.outputs], started)
        levels.append(replace(compared, cycles=run.cycles, simulated_cycles=run.simulated_cycles))
    return ValueCheck(path.name, top, seed, tuple(levels), rolled)


@contextlib.contextmanager
def _typed(name: str) -> Generator[None]:
    """What there is no type for between a kernel's operations is said of the source, which alone somebody wrote."""
    try:
        yield
    except PenstockError as error:
        if error.code != "unsupported-dtype":
            raise
        raise PenstockError(
            code="no-nests", what=f"{error.what} between its operations", where=f"{name}:1:1", limit=error.limit,
            hint="compute in narrower types, or analyse it for its cycles alone",
        ) from error  # fmt: skip


def kernel_nests(path: Path, top: str, most: int, *, apart: bool = False) -> tuple[KernelNests, bool]:
    """A kernel's nests as its pragmas ask for them; with more than `most` operations, or where they are none as they
    ask for them, loops stay loops if they can."""
    kernel = read_kernel(path, top, values=True)
    if sum(len(piece.graph.nodes) for piece in graphs(kernel.body)) > most:
        with contextlib.suppress(PenstockError):
            return nests_of_kernel(read_kernel(path, top, rolled=True, values=True), apart=apart), True
    try:
        return nests_of_kernel(kernel, apart=apart), False
    except PenstockError:
        rolled = None
        with contextlib.suppress(PenstockError):
            rolled = read_kernel(path, top, rolled=True, values=True)
            return nests_of_kernel(rolled, apart=apart), True
        if rolled is not None and kernel.beyond and not rolled.beyond:
            nests_of_kernel(rolled, apart=apart)  # the reason that is left where loops' ends are none
        raise


def _interpreted(nests: KernelNests, memories: Mapping[str, Array], name: str) -> dict[str, Array]:
    try:
        return stream_interpreter.run(nests.module, nests.memories(memories), nests.parameters)
    except PenstockError as error:
        if error.code != "undefined-value":
            raise
        raise undefined_value(f": {error.what}", name) from error


def random_memories(
    arguments: tuple[KernelArgument, ...], seed: int, below: int | None = None, scalars: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Numbers for every argument, the same each time, as they lie in a source's memory.

    Of integers most are small, so that conditions go both ways; a quarter may be anything that the type holds. With
    `below` all of them are from 0 up to there. `scalars` are values of arguments that are not drawn.
    """
    generator = np.random.default_rng(seed)
    drawn = {one.name: _drawn(np.dtype(one.dtype), one.shape, generator, below) for one in arguments}
    for one in arguments:
        if scalars is not None and one.name in scalars:
            drawn[one.name] = np.full(one.shape, scalars[one.name]).astype(one.dtype)
    return {one.name: _in_bits(one, drawn[one.name], signed=one.signed) for one in arguments}


def _drawn(dtype: Any, shape: tuple[int, ...], generator: np.random.Generator, below: int | None) -> Array:
    """`dtype` is numpy's, of a number or of a struct."""
    if dtype.names is not None:
        whole: Any = np.zeros(shape, dtype)
        for name in dtype.names:
            if dtype[name].kind != "V":
                whole[name] = _drawn(dtype[name], shape, generator, below)
        return whole
    if dtype.kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if below is not None:
        return generator.integers(0, min(below, np.iinfo(dtype).max), shape).astype(dtype)
    values = generator.integers(-8, 8, shape)
    whole = np.frombuffer(generator.bytes(values.size * dtype.itemsize), dtype).reshape(shape)
    return np.where(generator.random(shape) < _ANYTHING, whole, values).astype(dtype)


def _in_bits(one: KernelArgument, values: Array, *, signed: bool) -> Array:
    """What an integer of few bits keeps of numbers; nests hold all of them with a sign, a source as its type says."""
    if not one.bits:
        return values
    kept = values.astype(np.int64) & ((1 << one.bits) - 1)
    return np.where(signed & (kept >> (one.bits - 1) != 0), kept - (1 << one.bits), kept).astype(values.dtype)


def source_program(
    path: Path, top: str, arguments: tuple[KernelArgument, ...], folder: Path, flags: Sequence[str] = ()
) -> FieldProgram:
    taken = list(joined(arguments, path.name))
    program = build_program(
        folder, str(path.resolve()), f"::{top}", [one for one, _ in taken], ToolRunner(),
        order=list(dict.fromkeys(a.part.of if a.part is not None else a.name for a, _ in taken if not a.returned)),
        headers=(HEADERS, WHOLE_HEADERS, emitted_headers()), where=path.name, flags=flags, streams=True,
    )  # fmt: skip
    return FieldProgram(program, {one.name: tuple(fields) for one, fields in taken if fields})


def uses_unwritten(
    path: Path, top: str, arguments: tuple[KernelArgument, ...], given: Mapping[str, Array], folder: Path
) -> bool:
    """Whether a source's results depend on what lies in its variables before it writes them."""
    programs: list[FieldProgram] = []
    for filled in ("zero", "pattern"):
        try:
            flags = (f"-ftrivial-auto-var-init={filled}",)
            programs.append(source_program(path, top, arguments, folder / filled, flags))
        except PenstockError as error:
            if error.code != "source-does-not-compile":
                raise
            return False  # an older compiler, which cannot tell
    one, other = (program.run(given) for program in programs)
    return any(one[a.name].tobytes() != other[a.name].tobytes() for a in arguments)


def undefined_value(said: str, where: str) -> PenstockError:
    return PenstockError(
        code="undefined-value", what=f"the source uses what it never wrote{said}", where=where,
        limit="its results would be whatever lay in memory before", hint="give the variable or array a value first",
    )  # fmt: skip


def emitted_headers() -> Path:
    """The headers that emitted C++ is simulated with: streams, vectors and integers of any width."""
    from penstock.compiler.backend import hls

    return Path(hls.__file__).parent / "include"


def emit_kernel(nests: KernelNests, title: str, clock_mhz: float, folder: Path) -> tuple[Path, ...]:
    """The C++ of a kernel's nests, with its directives."""
    module = GenerateDirectives(Design(PLATFORM, clock_mhz, {})).apply(nests.module)
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    return emit_hls(
        top, nests.parameters, folder, title=f"{title}, read and written again", part="xcu280-fsvh2892-2L-e",
        clock_ns=round(1000 / clock_mhz, 3),
    )  # fmt: skip


def emitted_program(nests: KernelNests, folder: Path, work: Path) -> KernelProgram:
    interface = json.loads((folder / "interface.json").read_text())
    taken = sorted((*interface["inputs"], *interface["outputs"]), key=lambda entry: entry["position"])
    hls = folder.resolve() / "hls"
    return build_program(
        work, str(hls / "penstock_top.h"), f"::{interface['top']}", nests.arguments, ToolRunner(),
        order=[nests.copies.get(entry["name"], entry["name"]) for entry in taken],
        headers=(HEADERS, emitted_headers(), hls), sources=(hls / "penstock_top.cpp",), where="penstock_top.cpp",
    )  # fmt: skip


def _compared(
    level: ValueLevel, nests: KernelNests, expected: Sequence[Mapping[str, Array]],
    found: Sequence[Mapping[str, Array]], started: float,
) -> LevelValues:  # fmt: skip
    compared = different = 0
    first = ""
    written = [one for one in nests.arguments if one.written]
    for one, (wanted_of, given_of) in product(written, list(zip(expected, found, strict=True))):
        wanted = wanted_of[one.name]
        given = _in_bits(one, np.asarray(given_of[one.name]).reshape(one.shape), signed=one.signed)
        bits = np.dtype(f"u{np.dtype(one.dtype).itemsize}")
        apart = np.ascontiguousarray(wanted).view(bits) != np.ascontiguousarray(given).view(bits)
        compared, different = compared + apart.size, different + int(apart.sum())
        if apart.any() and not first:
            place = tuple(int(i) for i in np.argwhere(apart)[0])
            first = f"{one.name}{list(place)}: {wanted[place]} in the source, {given[place]} here"
    return LevelValues(level, compared, different, first, time.process_time() - started)
