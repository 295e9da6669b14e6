"""An image without an engine: the steps of a Dockerfile carried out in a root that debootstrap made.

Each command runs in mount and process namespaces of its own, in that root as its only one, so that nothing stays
mounted and no process outlives the command. What differs from an engine: the base is Debian's own Python in a virtual
environment at /usr/local instead of one that was built there; the network is this machine's; no profile of seccomp or
AppArmor.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.services.supervisor.process import dying_with_us
from tests.images.context import copy_in, seen_by_builds
from tests.images.dockerfile import DockerfileError, Instruction, Stage, expanded, read_stages
from tests.images.this_machine import MIRROR, Packages

Seen = dict[str, Path]
RELEASES = {"bookworm": "3.11", "trixie": "3.13"}
"""The Python of each Debian release: a base of another one cannot be made of packages."""
PACKAGES = "ca-certificates,mount,netbase,python3,python3-venv"
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASE = re.compile(r"python:(\d+\.\d+)-slim-(\w+)")
_ENTER = """
set -e
root=$1 folder=$2 uid=$3 gid=$4 seen=$5
shift 5
mount --rbind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /dev dev
for _ in $(seq "$seen"); do mount --rbind "$1" "$root$2"; shift 2; done
pivot_root . mnt
umount -l /mnt
cd "$folder"
setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"
"""
"""This shell stays, as root: it is the init whose end ends all, which a change of user would undo."""


class BuildFailed(AssertionError):
    """A step that did not work, with what it said."""


def why_not() -> str | None:
    """Why roots cannot be made here, if so."""
    if os.geteuid() != 0:
        return "a fresh root is made by root"
    missing = [name for name in ("debootstrap", "unshare", "pivot_root", "setpriv", "bash") if not shutil.which(name)]
    return f"not installed: {', '.join(missing)}" if missing else None


@dataclass
class Image:
    """A root, and what its Dockerfile says of commands in it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    user: str = "root"
    folder: str = "/"
    entry: list[str] = field(default_factory=list[str])
    command: list[str] = field(default_factory=list[str])

    def start(
        self, command: list[str], environment: dict[str, str] | None = None, see: Seen | None = None, log: Any = None
    ) -> subprocess.Popen[bytes]:
        """In the image; `see` are paths of this machine by those that they have inside. It dies with us."""
        pairs: list[str] = []
        for inside, path in (see or {}).items():
            there = self.root / inside.lstrip("/")
            if path.is_dir():
                there.mkdir(parents=True, exist_ok=True)
            elif not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                there.touch()
            pairs += [str(path), inside]
        uid, gid, home = self._account()
        values = {"HOME": home} | self.environment | (environment or {})
        command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in values.items()), *command]
        numbers = [str(uid), str(gid), str(len(pairs) // 2)]
        shell = ["bash", "-c", _ENTER, "enter", str(self.root), self.folder, *numbers, *pairs, *command]
        apart = [shutil.which("unshare") or "unshare", "--mount", "--propagation", "private", "--ipc", "--uts"]
        apart += ["--pid", "--fork", "--kill-child"]
        return subprocess.Popen(
            dying_with_us([*apart, *shell]), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )

    def run(self, command: list[str], environment: dict[str, str] | None = None, see: Seen | None = None) -> str:
        """To its end; what it printed. An exit code other than 0 is a failure."""
        started = self.start(command, environment, see, log=subprocess.PIPE)
        said = started.communicate()[0].decode(errors="replace")
        if started.returncode != 0:
            raise BuildFailed(f"{shlex.join(command)} ended with {started.returncode}:\n{said[-6000:]}")
        return said

    def _account(self) -> tuple[int, int, str]:
        for line in (self.root / "etc" / "passwd").read_text().splitlines():
            name, _, uid, gid, _, home, _ = line.split(":")
            if self.user in (name, uid):
                return int(uid), int(gid), home
        raise DockerfileError(f"USER {self.user}: no such user in the image")


def make_base(name: str, folder: Path, packages: Packages) -> Path:
    """The root that `FROM name` begins with."""
    found = _BASE.fullmatch(name)
    if found is None or RELEASES.get(found[2]) != found[1]:
        known = ", ".join(f"python:{python}-slim-{release}" for release, python in RELEASES.items())
        raise DockerfileError(f"FROM {name}: without an engine these can be made: {known}")
    if packages.mirror is None:
        raise DockerfileError(f"no mirror of Debian in apt's sources: name one in {MIRROR}")
    root = folder / name.replace(":", "-")
    if root.exists():
        return root
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", found[2], str(root), packages.mirror]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        raise BuildFailed(f"debootstrap ended with {made.returncode}:\n{made.stdout[-3000:]}")
    Image(root).run(["python3", "-m", "venv", "/usr/local"])
    return root


def build(file: Path, folder: Path, packages: Packages) -> Image:
    """Every stage of the Dockerfile in turn, below `folder`; the last one is the image."""
    built: dict[str, Image] = {}
    image: Image | None = None
    for stage in read_stages(file):
        root = folder / f"{file.name}-{stage.name}"
        earlier = built.get(stage.base)
        base = earlier.root if earlier else make_base(stage.base, folder, packages)
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        image = Image(root, dict(earlier.environment)) if earlier else Image(root)
        built[stage.name] = _Building(file, stage, image, built, packages).carry_out()
    assert image is not None
    return image


@dataclass
class _Building:
    file: Path
    stage: Stage
    image: Image
    built: dict[str, Image]
    packages: Packages

    def carry_out(self) -> Image:
        apt = self.image.root / "etc" / "apt" / "apt.conf.d" / "99of-this-machine"
        apt.write_text(self.packages.apt)
        for step in self.stage.instructions:
            try:
                self._step(step)
            except BuildFailed as failed:
                raise BuildFailed(f"{self.file.name}:{step.line}: {step.name} {failed}") from None
        apt.unlink()
        return self.image

    def _step(self, step: Instruction) -> None:
        image = self.image
        known = image.arguments | image.environment
        match step.name:
            case "RUN":
                seen = {str(path): path for path in self.packages.paths}
                image.run(step.command(), image.arguments | self.packages.environment, seen)
            case "COPY":
                self._copy(shlex.split(expanded(step.rest, known)))
            case "ENV":
                image.environment |= step.pairs(known)
            case "ARG":
                image.arguments |= step.pairs(known)
            case "USER":
                image.user = expanded(step.rest, known)
            case "WORKDIR":
                image.folder = os.path.normpath(os.path.join(image.folder, expanded(step.rest, known)))
                (image.root / image.folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "CMD":
                image.command = step.command()
            case "ENTRYPOINT":
                image.entry, image.command = step.command(), []
            case _:
                pass  # HEALTHCHECK, EXPOSE and LABEL are notes for an engine

    def _copy(self, words: list[str]) -> None:
        options = [word for word in words if word.startswith("--")]
        *sources, target = [word for word in words if not word.startswith("--")]
        origin, seen = self.file.parent, seen_by_builds(self.file.parent)
        for option in options:
            name, _, value = option.partition("=")
            if name != "--from" or value not in self.built:
                raise DockerfileError(f"COPY {option} is not carried out here")
            origin, seen = self.built[value].root, lambda _: True
        copy_in(sources, target, origin, self.image.root, self.image.folder, seen)
