"""Finds the HLS tools from one configured path or from PATH: programs, version, XRT, licences, platforms, what lacks.

Nothing is started to find them, except that a version which no path names is asked of the program itself.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from glob import escape, glob
from os.path import isdir, isfile  # unlike those of Path, they call what may not be looked at absent
from pathlib import Path
from typing import Literal

from penstock.compiler.errors import PenstockError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner, clean_environment

PROGRAMS = ("vitis_hls", "vitis-run", "v++", "emconfigutil", "vivado", "xclbinutil")
LICENCE_VARIABLES = ("XILINXD_LICENSE_FILE", "LM_LICENSE_FILE")
SETTING = "PENSTOCK_VITIS"
FIRST_UNIFIED = (2024, 1)
VERSION_SECONDS = 120.0

Form = Literal["classic", "unified", "tcl"]
"""How HLS is started: `vitis_hls -f`, `v++ --mode hls` with `vitis-run --mode hls`, or `vitis-run --mode hls --tcl`."""

_RELEASE = re.compile(r"(?<!\d)(20[12]\d)\.([1-4])(?:\.\d+)?(?!\d)")
# Below a configured path, each release's programs lie in one of these; `*` stands for a release.
_LAYOUTS = (
    "bin", "Vitis/bin", "Vitis_HLS/bin", "Vivado/bin",
    "*/bin", "*/Vitis/bin", "*/Vitis_HLS/bin", "*/Vivado/bin",
    "Vitis/*/bin", "Vitis_HLS/*/bin", "Vivado/*/bin",
)  # fmt: skip
_SYSTEM, _XRT_LIBRARY = Path("/usr"), "lib/*/libxrt_coreutil.so.*"
_PRODUCTS = ("Vitis", "Vitis_HLS", "Vivado")


@dataclass(frozen=True, order=True)
class Release:
    """A release of the tools, such as 2023.2. Updates within one (2024.1.2) are the same release here."""

    year: int
    number: int

    def __str__(self) -> str:
        return f"{self.year}.{self.number}"

    @staticmethod
    def find(text: str) -> Release | None:
        """The last release that a path or the first that a banner names."""
        found = _RELEASE.findall(text)
        return Release(int(found[-1][0]), int(found[-1][1])) if found else None


@dataclass(frozen=True)
class VitisTools:
    """What is there. `form` is None where HLS cannot be started at all; `missing` says what lacks and what for."""

    release: Release | None
    form: Form | None
    programs: Mapping[str, Path]
    settings: Path | None = None
    xrt: Path | None = None
    xrt_version: str | None = None
    licences: tuple[str, ...] = ()
    platforms: Mapping[str, Path] = field(default_factory=dict[str, Path])
    missing: tuple[str, ...] = ()

    def require(self, *names: str) -> None:
        """Raise a typed error for the first program that is not there."""
        for name in names:
            if name not in self.programs:
                raise PenstockError(
                    code="vitis-missing", what=f"the program {name} was not found", where="Vitis",
                    limit=f"found: {', '.join(sorted(self.programs)) or 'nothing'}",
                    hint=f"set {SETTING} to the folder of the installation; `penstock doctor` says what is there",
                )  # fmt: skip


def find_vitis(path: Path | None = None, environment: Mapping[str, str] | None = None) -> VitisTools:
    """Look below `path` (or PENSTOCK_VITIS); without either, on PATH. A configured path is never mixed with PATH."""
    env = os.environ if environment is None else environment
    if path is None and env.get(SETTING, "").strip():
        path = Path(env[SETTING].strip()).expanduser()
    folders = list(_below(path)) if path else [Path(p) for p in env.get("PATH", "").split(os.pathsep) if p]
    programs = _programs(folders)
    xrt = _xrt(env)
    for name in ("xclbinutil", "emconfigutil"):
        if name not in programs and (found := _of_xrt(name, xrt, env)):
            programs[name] = found
    release = _release(programs)
    licences = tuple(name for name in LICENCE_VARIABLES if env.get(name, "").strip())
    if isfile(Path(env.get("HOME", "/nonexistent")) / ".Xilinx" / "Xilinx.lic"):
        licences = (*licences, "~/.Xilinx/Xilinx.lic")
    platforms = _platforms(programs, env)
    form = _form(release, programs)
    return VitisTools(
        release, form, programs, _settings(programs), xrt, _xrt_version(xrt), licences, platforms,
        tuple(_missing(form, programs, xrt, licences, platforms, path)),
    )  # fmt: skip


def _below(path: Path) -> Iterator[Path]:
    """Folders with programs below a configured path, those of its newest release only."""
    start = path.parent if isfile(path) or path.name == "bin" else path
    found = [folder for layout in _LAYOUTS for folder in _matching(start, layout) if isdir(folder)]
    if found and start.parent.name in _PRODUCTS:  # .../Vitis/2023.2: its sisters are .../Vitis_HLS/2023.2 and others
        found += [f for p in _PRODUCTS if isdir(f := start.parents[1] / p / start.name / "bin")]
    elif found and start.name in _PRODUCTS:  # .../2025.1/Vitis
        found += [f for p in _PRODUCTS if isdir(f := start.parent / p / "bin")]
    releases = [release for folder in found if (release := Release.find(str(folder))) is not None]
    newest = max(releases, default=None)
    yield from (folder for folder in found if newest is None or Release.find(str(folder)) in (newest, None))


def _matching(folder: Path, pattern: str) -> list[Path]:
    """What lies below a folder, in order; nothing where it may not be read."""
    return sorted(Path(name) for name in glob(str(Path(escape(str(folder)), pattern))))


def _programs(folders: list[Path]) -> dict[str, Path]:
    """The first of each name. Links are followed for the version that their target's path names."""
    found: dict[str, Path] = {}
    for name in PROGRAMS:
        for folder in folders:
            program = folder / name
            if isfile(program) and os.access(program, os.X_OK):
                found[name] = program
                break
    return found


def _release(programs: Mapping[str, Path]) -> Release | None:
    """By the path, else by the program's banner; vitis_hls last, whose banner may name an older release."""
    order = [programs[name] for name in ("vitis-run", "v++", "vitis_hls") if name in programs]
    for program in order:
        if release := Release.find(str(program)) or Release.find(str(program.resolve())):
            return release
    for program in order:
        if release := Release.find(_ask(program)):
            return release
    return None


def _ask(program: Path) -> str:
    """The banner's line with the version: not the lines below it, which name builds."""
    option = "-version" if program.name == "vitis_hls" else "--version"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        result = ToolRunner().run(
            ToolCommand(
                (str(program), option), work, work, env=clean_environment(HOME=folder),
                timeout=VERSION_SECONDS, log_limit=65536,
            )
        )  # fmt: skip
        lines = result.tail.splitlines()
    return next((line for line in lines if line.startswith("******")), "")


def _form(release: Release | None, programs: Mapping[str, Path]) -> Form | None:
    old = release is not None and (release.year, release.number) < FIRST_UNIFIED
    if "vitis_hls" in programs and old:
        return "classic"
    if "vitis-run" in programs:
        return "unified" if "v++" in programs else "tcl"
    return "classic" if "vitis_hls" in programs else None


def _settings(programs: Mapping[str, Path]) -> Path | None:
    """The script that sets the tools' environment, beside the programs."""
    for name in ("v++", "vitis-run", "vitis_hls"):
        if name in programs and isfile(script := programs[name].parents[1] / "settings64.sh"):
            return script
    return None


def _xrt(env: Mapping[str, str]) -> Path | None:
    for folder in (env.get("XILINX_XRT", ""), "/opt/xilinx/xrt"):
        if folder and isdir(Path(folder) / "lib"):
            return Path(folder)
    return _SYSTEM if _matching(_SYSTEM, _XRT_LIBRARY) else None


def _of_xrt(name: str, xrt: Path | None, env: Mapping[str, str]) -> Path | None:
    folders = [xrt / "bin"] if xrt else []
    folders += [Path(p) for p in env.get("PATH", "").split(os.pathsep) if p]
    return _programs(folders).get(name)


def _xrt_version(xrt: Path | None) -> str | None:
    """XRT writes its version beside itself; a distribution's package has it in the library's name."""
    if xrt is not None and xrt == _SYSTEM:
        return next((file.name.partition(".so.")[2] for file in reversed(_matching(xrt, _XRT_LIBRARY))), None)
    try:
        found = json.loads((xrt / "version.json").read_text()) if xrt else {}
        return str(found["BUILD_VERSION"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _platforms(programs: Mapping[str, Path], env: Mapping[str, str]) -> dict[str, Path]:
    """Platform files by name, the first of each: the user's repositories come first."""
    folders = [Path(p) for p in env.get("PLATFORM_REPO_PATHS", "").split(os.pathsep) if p]
    if "v++" in programs:
        root = programs["v++"].parents[1]
        folders += [root / "base_platforms", root / "platforms"]
    folders.append(Path("/opt/xilinx/platforms"))
    found: dict[str, Path] = {}
    for folder in folders:
        for file in sorted((*_matching(folder, "*.xpfm"), *_matching(folder, "*/*.xpfm"))):
            found.setdefault(file.stem, file)
    return found


def _missing(
    form: Form | None,
    programs: Mapping[str, Path],
    xrt: Path | None,
    licences: tuple[str, ...],
    platforms: Mapping[str, Path],
    path: Path | None,
) -> Iterator[str]:
    where = f"below {path}" if path else "on PATH"
    if form is None:
        yield f"neither vitis_hls nor vitis-run {where}: no csynth, no cosim"
    if "vivado" not in programs and form is not None:
        yield f"no vivado {where}: no co-simulation, no implemented figures"
    if "v++" not in programs:
        yield f"no v++ {where}: no bitstream for Alveo cards"
        return
    if not platforms:
        yield "no platform files: v++ has no card to link for; set PLATFORM_REPO_PATHS"
    if not licences:
        yield f"no licence is named ({', '.join(LICENCE_VARIABLES)}): HLS runs without, v++ may refuse to implement"
    if "xclbinutil" not in programs:
        yield "no xclbinutil: a bitstream's container cannot be checked"
    if xrt is None:
        yield "no XRT: bitstreams are built here and run elsewhere"
