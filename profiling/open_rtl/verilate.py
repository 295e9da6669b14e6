"""From SystemVerilog to a program: Verilator, one C++ compilation for several designs, and a cache by content.

Half of what a small design's compilation takes is the same for every design (templates of Verilator's headers), so
designs that are built together share one translation unit and one program, in which each has its number.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.profiling.cache import CacheStore, content_key, runs_folder
from penstock.profiling.open_rtl.failures import failed
from penstock.profiling.open_rtl.tools import Tool, find_cxx, find_verilator
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolOutcome, ToolRunner, clean_environment
from penstock.profiling.work_folder import private_folder

HERE = Path(__file__).parent
# Functions of bounded length: the compiler's time grows faster than theirs.
VERILATOR_FLAGS = (
    "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "--no-timing", "-Wno-fatal", "-Wno-lint",
    "-Wno-style", "-Wno-UNOPTFLAT", "--quiet", "--output-split-cfuncs", "400",
)  # fmt: skip
FEATURES_OFF = ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")
CXX_FLAGS = ("-std=c++20", "-DVL_TIME_CONTEXT", *(f"-DVM_{name}=0" for name in FEATURES_OFF), "-w")
LIBRARIES = ("-lpthread", "-latomic")
LONG_RUN_FLAGS, SHORT_RUN_FLAGS = "-O2", "-O0"  # most cores run for less time than they take to compile
MEMORY_LIMIT = 12 << 30
TOGETHER = 12
"""Designs in one program: many share the fixed cost, few enough that two processes have work each."""


@dataclass(frozen=True)
class BuiltProgram:
    """A built design: the program, and its number in there. The times are its share of the build's."""

    path: Path
    number: int
    verilate_s: float
    compile_s: float
    cached: bool = False


def build(design: RtlDesign, tools: ToolRunner, *, long_run: bool = False) -> BuiltProgram:
    """The program of one design; -O2 pays where millions of cycles are run."""
    result = build_many([design], tools, long_run=long_run)[0]
    if isinstance(result, ProfilingError):
        raise result
    return result


def build_many(
    designs: Sequence[RtlDesign], tools: ToolRunner, *, long_run: bool = False, processes: int = 2
) -> list[BuiltProgram | ProfilingError]:
    """Programs for all designs, in their order; a design that cannot be built does not harm the others."""
    builder = _Builder(find_verilator(), find_cxx(), tools, LONG_RUN_FLAGS if long_run else SHORT_RUN_FLAGS)
    keys = [builder.key(design) for design in designs]
    found: dict[str, BuiltProgram | ProfilingError] = {}
    for key in keys:
        if program := builder.known(key):
            found[key] = program
    waiting = {key: design for key, design in zip(keys, designs, strict=True) if key not in found}
    together = min(TOGETHER, -(-len(waiting) // processes)) if waiting else 1
    groups = [dict(list(waiting.items())[i : i + together]) for i in range(0, len(waiting), together)]
    if len(groups) > 1:
        builder.runtime()
    with ThreadPoolExecutor(processes) as pool:
        for made in pool.map(builder.make, groups):
            found |= made
    return [found[key] for key in keys]


class _Builder:
    """One set of tools and flags."""

    def __init__(self, verilator: Tool, cxx: Tool, tools: ToolRunner, optimise: str) -> None:
        self.verilator, self.cxx, self.tools = verilator, cxx, tools
        self.flags = (*CXX_FLAGS, optimise)
        harness = [(HERE / name).read_text() for name in ("harness.h", "harness.cpp")]
        self.version = content_key(verilator.version, cxx.version, self.flags, VERILATOR_FLAGS, LIBRARIES, *harness)
        self.programs = CacheStore("programs", keep=256)
        self.designs = CacheStore("designs", keep=8192)

    def key(self, design: RtlDesign) -> str:
        """What a program depends on; memory contents are read when it runs."""
        ports = [(p.name, p.kind, p.width) for p in design.ports]
        return content_key(self.version, design.top, list(design.files.items()), ports)

    def known(self, key: str) -> BuiltProgram | None:
        entry = self.designs.read(key)
        if not isinstance(entry, dict) or not self.programs.path(str(entry.get("program"))).is_file():
            return None
        return BuiltProgram(self.programs.path(entry["program"]), int(entry["number"]), 0.0, 0.0, cached=True)

    def make(self, designs: Mapping[str, RtlDesign]) -> dict[str, BuiltProgram | ProfilingError]:
        """Build what is still missing, once, whoever else wants it at the same time."""
        name = content_key(*sorted(designs))
        with self.programs.making(name):
            found: dict[str, BuiltProgram | ProfilingError] = {}
            missing: dict[str, RtlDesign] = {}
            for key, design in designs.items():
                if program := self.known(key):
                    found[key] = program
                else:
                    missing[key] = design
            return found | (self._build(name, missing) if missing else {})

    def _build(self, name: str, designs: Mapping[str, RtlDesign]) -> dict[str, BuiltProgram | ProfilingError]:
        """Together, or each alone where one of several brings the whole down."""
        try:
            return self._together(name, designs)
        except ProfilingError as error:
            if len(designs) == 1:
                return dict.fromkeys(designs, error)
            return {key: self._build(f"alone-{key}", {key: design})[key] for key, design in designs.items()}

    def _together(self, name: str, designs: Mapping[str, RtlDesign]) -> dict[str, BuiltProgram | ProfilingError]:
        runtime = self.runtime()
        with private_folder(runs_folder()) as folder:
            began = time.monotonic()
            verdicts = self._verilate(folder, list(designs.values()))
            verilated = time.monotonic()
            good = [i for i, problem in enumerate(verdicts) if problem is None]
            if good:
                self._compile(folder, list(designs.values()), good, runtime)
            ended = time.monotonic()
            if good:
                (folder / "sim").replace(self.programs.path(name))
                self.programs.prune()
        result: dict[str, BuiltProgram | ProfilingError] = {}
        for number, (key, verdict) in enumerate(zip(designs, verdicts, strict=True)):
            if verdict is not None:
                result[key] = verdict
                continue
            self.designs.write(key, {"program": name, "number": number})
            share = len(good)
            path = self.programs.path(name)
            result[key] = BuiltProgram(path, number, (verilated - began) / share, (ended - verilated) / share)
        return result

    def _verilate(self, folder: Path, designs: Sequence[RtlDesign]) -> list[ProfilingError | None]:
        """C++ for each design, in folders of their own; one supervised run for all of them."""
        lines: list[str] = []
        for number, design in enumerate(designs):
            place = folder / f"k{number}"
            design.write(place)
            command = (
                *self.verilator.argv, *VERILATOR_FLAGS, "-DPENSTOCK_PROBES", "--prefix", f"Vk{number}",
                "--top-module", design.top, "--Mdir", "cpp", *design.files,
            )  # fmt: skip
            lines.append(f"(cd k{number} && {shlex.join(command)} >verilator.log 2>&1)")
        script = folder / "verilate.sh"
        script.write_text("\n".join([*lines, ":"]) + "\n")
        env = clean_environment(**self.verilator.env)
        result = self.tools.run(
            ToolCommand(("sh", script.name), folder, folder / "logs", env, 120.0 + 60 * len(designs), MEMORY_LIMIT)
        )
        if not result.ok:
            raise failed("verilator", result)
        return [self._verdict(folder / f"k{number}", number, design) for number, design in enumerate(designs)]

    @staticmethod
    def _verdict(place: Path, number: int, design: RtlDesign) -> ProfilingError | None:
        """Success is a file that is there, since exit codes are not to be trusted."""
        if (place / "cpp" / f"Vk{number}.cpp").is_file():
            return None
        log = (place / "verilator.log").read_text(errors="replace")
        return ProfilingError(
            "tool-failed", what=f"Verilator does not accept the SystemVerilog of {design.top}", where=design.top,
            limit=next((line for line in log.splitlines() if "%Error" in line), ""), log_tail=log[-4000:],
            hint=DEFECT,
        )  # fmt: skip

    def _compile(self, folder: Path, designs: Sequence[RtlDesign], good: Sequence[int], runtime: Path) -> None:
        text, size = ['#include "harness.h"'], 0
        for number in good:
            sources = sorted((folder / f"k{number}" / "cpp").glob("*.cpp"))
            size += sum(path.stat().st_size for path in sources)
            text += ["#undef VL_PCH_INCLUDED", *(f'#include "{path.relative_to(folder)}"' for path in sources)]
        text += [_opener(number, designs[number]) for number in good] + [_main(good)]
        (folder / "all.cpp").write_text("\n".join(text) + "\n")
        includes = [part for number in good for part in ("-I", f"k{number}/cpp")]
        command = (
            *self.cxx.argv, *self.flags, "-include", str(runtime / "pre.h"), *self._includes(), "-I", str(HERE),
            *includes, "all.cpp", *(str(runtime / name) for name in OBJECTS), *self._libraries(), "-o", "sim",
        )  # fmt: skip
        self._cxx(command, folder, 600.0 + size / 5_000)

    def _includes(self) -> tuple[str, ...]:
        include = self.verilator.root / "include"
        return ("-isystem", str(include), "-isystem", str(include / "vltstd"))

    def _libraries(self) -> tuple[str, ...]:
        return LIBRARIES[:1] if self._is_zig else LIBRARIES

    @property
    def _is_zig(self) -> bool:
        return "ziglang" in self.cxx.origin

    def _cxx(self, command: tuple[str, ...], folder: Path, timeout: float) -> None:
        env = clean_environment(ZIG_GLOBAL_CACHE_DIR=str(self.programs.folder.parent / "zig"))
        result = self.tools.run(
            ToolCommand(command, folder, Path(tempfile.mkdtemp(prefix="logs-", dir=folder)), env, timeout, MEMORY_LIMIT)
        )
        if not result.ok:
            raise failed("c++", result, "" if result.outcome is not ToolOutcome.EXIT else DEFECT)

    def runtime(self) -> Path:
        """Verilator's own C++ and the harness as objects, and the headers of all of it precompiled."""
        store = CacheStore("runtime", keep=8)
        place = store.path(self.version)
        with store.making(self.version):
            if place.is_dir():
                return place
            with private_folder(runs_folder()) as work:
                folder = work / "new"
                folder.mkdir()
                shutil.copy(HERE / "harness.h", folder / "pre.h")
                with (folder / "pre.h").open("a") as file:
                    file.write('#include "verilated.h"\n')
                include = self.verilator.root / "include"
                sources = {"harness.o": HERE / "harness.cpp", **{n: include / f"{n[:-2]}.cpp" for n in OBJECTS[1:]}}
                flags = (*self.flags, *self._includes())
                commands = [(*flags, "-c", str(source), "-o", name) for name, source in sources.items()]
                if suffix := self._precompiled():
                    commands.append((*flags, "-x", "c++-header", "pre.h", "-o", f"pre.h.{suffix}"))
                with ThreadPoolExecutor(2) as pool:
                    list(pool.map(lambda c: self._cxx((*self.cxx.argv, *c), folder, 600.0), commands))
                for logs in folder.glob("logs-*"):
                    shutil.rmtree(logs)
                folder.replace(place)
        store.prune()
        return place

    def _precompiled(self) -> str:
        """The suffix by which a compiler finds a precompiled header; zig keeps a cache of its own instead."""
        if self._is_zig:
            return ""
        return "pch" if "clang" in self.cxx.version else "gch"


DEFECT = "this is a defect in the RTL backend; please report it with the log"
OBJECTS = ("harness.o", "verilated.o", "verilated_threads.o")


def _opener(number: int, design: RtlDesign) -> str:
    """C++ that makes one model and hands its signals to the harness."""
    model = f"Vk{number}"
    ports = ",\n        ".join(_port(port) for port in design.ports)
    return f"""
static penstock::Core open_{number}(VerilatedContext* context) {{
    {model}* top = new {model}{{context, "core"}};
    auto eval = [](void* model) {{ static_cast<{model}*>(model)->eval(); }};
    auto finish = [](void* model) {{ static_cast<{model}*>(model)->final(); }};
    using penstock::signal;
    return {{top, eval, finish, signal(top->clk), signal(top->rst), signal(top->start), signal(top->done), {{
        {ports}
    }}}};
}}"""


def _port(port: RtlPort) -> str:
    data, strobe, other = SIGNALS[port.kind]
    signals = ", ".join(f"signal(top->{_member(f'{port.name}_{suffix}')})" for suffix in (data, strobe, other))
    return f'{{"{port.name}", penstock::{port.kind}, {signals}}}'


def _member(name: str) -> str:
    """What Verilator calls a port: of two underscores it spells out the second."""
    return name.replace("__", "___05F")


SIGNALS = {
    "stream_in": ("tdata", "tvalid", "tready"),
    "stream_out": ("tdata", "tvalid", "tready"),
    "memory_read": ("rdata", "re", "addr"),
    "memory_write": ("wdata", "we", "addr"),
}


def _main(numbers: Sequence[int]) -> str:
    cases = "\n".join(f"        case {n}: {{ auto core = open_{n}(&context); return penstock::run(core, argv[2]); }}"
                      for n in numbers)  # fmt: skip
    return f"""
int main(int argc, char** argv) {{
    if (argc != 3) return 2;
    VerilatedContext context;
    switch (atoi(argv[1])) {{
{cases}
        default: return 2;
    }}
}}"""
