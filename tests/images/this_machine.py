"""Where this machine fetches packages: taken from its own configuration of apt and pip for the time of a build.

A build in a container would be told the same by its engine. Nothing of it stays in the root that was built.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MIRROR = "PENSTOCK_IMAGES_MIRROR"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
_PASSED = re.compile(r"(?i:(https?|no|all|ftp)_proxy)|SSL_CERT_FILE")


@dataclass(frozen=True)
class Packages:
    """The mirror of Debian (none found: None), apt's settings, the environment of builds, and paths to be seen."""

    mirror: str | None
    apt: str
    environment: dict[str, str]
    paths: tuple[Path, ...]


def packages_of_this_machine() -> Packages:
    environment = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    environment |= _pip()
    named = [word.removeprefix("file://") for value in environment.values() for word in value.split()]
    paths = {Path(word) for word in [*named, CERTIFICATES, "/etc/resolv.conf"] if word.startswith("/")}
    # an index on disk is a folder of links to files beside it
    beside = {path.parent if path.name == "simple" else path for path in paths}
    return Packages(_mirror(), _apt(), environment, tuple(sorted(path for path in beside if path.exists())))


def _pip() -> dict[str, str]:
    """Every setting, wherever it was made, as the variable that pip reads for it."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    found: dict[str, str] = {}
    for line in told.stdout.splitlines():  # a variable of the environment is listed before, and wins over, a file
        key, _, value = line.partition("=")
        name = "PIP_" + key.rpartition(".")[2].upper().replace("-", "_")
        if name != "PIP_CONSTRAINT":  # what an image holds is said by the repository's own constraints
            found.setdefault(name, " ".join(str(ast.literal_eval(value)).split()))
    return found


def _apt() -> str:
    """How to fetch, not what else to do: hooks name programs that the root has not."""
    if shutil.which("apt-config") is None:
        return ""
    told = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    return "".join(f"{line}\n" for line in told.splitlines() if line.startswith("Acquire::"))


def _mirror() -> str | None:
    if given := os.environ.get(MIRROR):
        return given
    folder = Path("/etc/apt")
    for file in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.*"))]:
        text = file.read_text() if file.suffix in (".list", ".sources") and file.exists() else ""
        found = re.search(r"^(?:URIs:|deb(?: \[[^]]*\])?) *(\S+/debian/?)(?:\s|$)", text, re.MULTILINE)
        if found:
            return found[1]
    return None
