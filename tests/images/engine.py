"""An image by a container engine that answers: the same calls as a fresh root has."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.services.supervisor.process import dying_with_us
from tests.images.fresh_root import BuildFailed, Seen

IMPORTS = ["--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"]
"""As docker-compose.yml has it for imports; `systempaths` is Docker's alone."""


def answering() -> str | None:
    """The first engine that is installed and can be reached."""
    for name in ("docker", "podman"):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True).returncode == 0:
            return name
    return None


@dataclass
class EngineImage:
    engine: str
    name: str
    command: list[str] = field(default_factory=list[str])

    def start(
        self, command: list[str], environment: dict[str, str] | None = None, see: Seen | None = None, log: Any = None
    ) -> subprocess.Popen[bytes]:
        options = ["--rm", "--init", "--network=host", *IMPORTS]
        options += [] if self.engine == "podman" else ["--security-opt=systempaths=unconfined"]
        options += [f"--env={name}={value}" for name, value in (environment or {}).items()]
        options += [f"--volume={path}:{inside}" for inside, path in (see or {}).items()]
        return subprocess.Popen(
            dying_with_us([shutil.which(self.engine) or self.engine, "run", *options, self.name, *command]),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, command: list[str], environment: dict[str, str] | None = None, see: Seen | None = None) -> str:
        started = self.start(command, environment, see, log=subprocess.PIPE)
        said = started.communicate()[0].decode(errors="replace")
        if started.returncode != 0:
            raise BuildFailed(f"{command} ended with {started.returncode}:\n{said[-6000:]}")
        return said


def build_by(engine: str, file: Path) -> EngineImage:
    name = f"penstock-test-{file.suffix.removeprefix('.')}"
    command = [engine, "build", "--file", str(file), "--tag", name, str(file.parent)]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        raise BuildFailed(f"{file.name}: {engine} build ended with {made.returncode}:\n{made.stdout[-6000:]}")
    return EngineImage(engine, name)
