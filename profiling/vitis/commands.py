"""The command lines of HLS steps for each way to start HLS, where their reports are, the environment of the tools."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from penstock.compiler.errors import PenstockError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner, clean_environment
from penstock.profiling.vitis.detect import LICENCE_VARIABLES, Form, VitisTools

HlsStep = Literal["csim", "csynth", "cosim", "export", "implement"]
HLS_STEPS: tuple[HlsStep, ...] = ("csim", "csynth", "cosim", "export", "implement")
SCRIPT, CONFIG, PROJECT, WORK = "run_hls.tcl", "hls_config.cfg", "penstock_hls", "work"
SETTINGS_SECONDS = 120.0
_NEEDS_RTL: frozenset[HlsStep] = frozenset({"cosim", "export", "implement"})
_MODES: Mapping[HlsStep, str] = {"csim": "--csim", "cosim": "--cosim", "export": "--package", "implement": "--impl"}
# What a shell has that sourced a script, which no tool needs, and what a run sets anew.
_OF_THE_SHELL = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "TMP", "TEMP", "PENSTOCK_TOOL", "HOME"})


@dataclass(frozen=True)
class HlsCommand:
    """One start of a tool, in the folder `hls`, and the steps that it does in turn."""

    argv: tuple[str, ...]
    steps: tuple[HlsStep, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def in_order(steps: Sequence[HlsStep]) -> tuple[HlsStep, ...]:
    """The steps in the order in which they can be done, with csynth before what needs its RTL."""
    wanted = set(steps) | ({"csynth"} if _NEEDS_RTL & set(steps) else set())
    unknown = wanted - set(HLS_STEPS)
    if unknown or not wanted:
        raise PenstockError(
            code="bad-step", what=f"unknown HLS steps: {', '.join(sorted(unknown)) or 'none'}",
            limit=f"known are {', '.join(HLS_STEPS)}", hint="name at least one of them",
        )  # fmt: skip
    return tuple(step for step in HLS_STEPS if step in wanted)


def hls_commands(tools: VitisTools, steps: Sequence[HlsStep]) -> tuple[HlsCommand, ...]:
    """A script does all steps in one start; the unified flow has a start for each."""
    wanted = in_order(steps)
    if tools.form is None:
        tools.require("vitis-run")
    if tools.form == "unified":
        return tuple(HlsCommand(_unified(tools, step), (step,)) for step in wanted)
    start = ("vitis_hls", "-f") if tools.form == "classic" else ("vitis-run", "--mode", "hls", "--tcl")
    argv = (str(tools.programs[start[0]]), *start[1:], SCRIPT)
    return (HlsCommand(argv, wanted, {"PENSTOCK_HLS_STEPS": " ".join(wanted)}),)


def _unified(tools: VitisTools, step: HlsStep) -> tuple[str, ...]:
    settings = ("--config", CONFIG, "--work_dir", WORK)
    if step == "csynth":
        return (str(tools.programs["v++"]), "-c", "--mode", "hls", *settings)
    return (str(tools.programs["vitis-run"]), "--mode", "hls", _MODES[step], *settings)


def solution(form: Form | None) -> Path:
    """Below the folder `hls`: where syn, sim and impl are."""
    return Path(WORK) / "hls" if form == "unified" else Path(PROJECT) / "solution1"


def kernel_file(form: Form | None, top: str) -> Path:
    """Below the folder `hls`: the exported kernel."""
    return Path(WORK) / f"{top}.xo" if form == "unified" else Path(f"{top}.xo")


def tool_environment(tools: VitisTools, home: Path, source: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the tools run in: their own settings, the licences of `source` (the process' environment), a private home.

    A licence file in the user's home, where the tools would look, is named, since they get another home.
    """
    given = os.environ if source is None else source
    env = clean_environment(HOME=str(home))
    if tools.settings is not None:
        env |= _sourced(tools.settings, tools.settings.stat().st_mtime_ns)
    else:
        folders = dict.fromkeys(str(program.parent) for program in tools.programs.values())
        env["PATH"] = os.pathsep.join([*folders, env["PATH"]])
    kept = ("PLATFORM_REPO_PATHS", "XILINX_XRT", *LICENCE_VARIABLES)
    env |= {name: given[name] for name in kept if given.get(name, "").strip()}
    if tools.xrt is not None:
        env.setdefault("XILINX_XRT", str(tools.xrt))
    own = Path(given.get("HOME", "/nonexistent")) / ".Xilinx" / "Xilinx.lic"
    if own.is_file():
        named = [env[LICENCE_VARIABLES[0]]] if LICENCE_VARIABLES[0] in env else []
        env[LICENCE_VARIABLES[0]] = os.pathsep.join([*named, str(own)])
    return env


@cache
def _sourced(script: Path, _changed: int) -> dict[str, str]:
    """The variables that a settings script sets."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        argv = ("bash", "-c", '. "$0" >/dev/null 2>&1; env -0', str(script))
        result = ToolRunner().run(ToolCommand(argv, work, work, timeout=SETTINGS_SECONDS))
        if not result.ok:
            raise result.error("settings64.sh", f"see whether `source {script}` works in a shell")
        text = result.stdout.read_text(errors="replace")
    pairs = (line.partition("=") for line in text.split("\0") if "=" in line)
    return {name: value for name, _, value in pairs if name not in _OF_THE_SHELL}
