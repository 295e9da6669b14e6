"""What a generated connectivity.cfg says, and the same file for the platforms of this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.detect import VitisTools

FILE = "connectivity.cfg"
_LINE = re.compile(r"^(platform|freqHz)=(\S+)\s*$", re.M)


@dataclass(frozen=True)
class Connectivity:
    """The platform and the clock that a design is linked for; `text` names the platform's file. `note` says where it is
    another of the same card.
    """

    text: str
    platform: Path
    clock_hz: int
    note: str = ""


def read_connectivity(folder: Path, tools: VitisTools) -> Connectivity:
    """Read `folder`/connectivity.cfg, for what is installed of the card that it names."""
    try:
        text = (folder / FILE).read_text()
    except OSError as error:
        raise ProfilingError(
            "bad-target", what="the design has no link configuration", where=str(folder),
            limit="only platforms with a shell can be linked for", hint="choose one with a shell, such as u55c or u280",
        ) from error  # fmt: skip
    said = dict(_LINE.findall(text))
    name = said.get("platform", "")
    found = installed(name, tools)
    if found is None:
        raise ProfilingError(
            "bad-target", what=f"the platform {name!r} is not installed", where="v++",
            limit=f"installed: {', '.join(sorted(tools.platforms)) or 'none'}",
            hint="install its development package, or set PLATFORM_REPO_PATHS to the folder that holds it",
        )  # fmt: skip
    clock = said.get("freqHz", "").partition(":")[0]
    if not clock.isdigit():
        raise ProfilingError(
            "bad-request", what="the link configuration names no clock", where=FILE, hint="emit the design again"
        )
    file = tools.platforms[found]
    text = re.sub(r"^platform=.*$", lambda _: f"platform={file}", text, count=1, flags=re.M)
    note = "" if found == name else f"linked for {found}, since {name} is not installed"
    return Connectivity(text, file, int(clock), note)


def installed(name: str, tools: VitisTools) -> str | None:
    """The platform of that name, or the newest of the same card: shells change with the tools, cards and their memories
    do not. Names are `<vendor>_<card>_<shell>_<version>`; the newest is the last of them.
    """
    card = "_".join(name.split("_")[:2]) + "_"
    return name if name in tools.platforms else max((o for o in tools.platforms if o.startswith(card)), default=None)
