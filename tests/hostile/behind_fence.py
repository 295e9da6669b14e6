"""Runs a script behind the fence as the import does, in this process or as an ordinary user in another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock import IMPORT_ROOT
from penstock.profiling.tool_runner import ToolCommand, ToolRunner, clean_environment
from penstock.services.steps.fence.plan import FenceLimits, fenced
from tests.fixtures.as_ordinary_user import ORDINARY

SMALL = FenceLimits(cpu_seconds=20, memory_bytes=1 << 29, out_bytes=4 << 20, tmp_bytes=4 << 20, processes=16)


@dataclass(frozen=True)
class Ended:
    """How it ended, what it said, and which outputs came out."""

    outcome: str
    exit_code: int | None
    said: str
    left_behind: int
    outputs: tuple[str, ...]
    seconds: float
    log_bytes: int


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach and write to; pytest's own are its user's alone."""
    with tempfile.TemporaryDirectory(prefix="penstock-hostile-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def behind_fence(
    folder: Path,
    arguments: Sequence[str],
    *,
    limits: FenceLimits = SMALL,
    outputs: Sequence[str] = (),
    timeout: float = 300.0,
) -> Ended:
    for name in ("stage", "out", "model"):
        (folder / name).mkdir(exist_ok=True)
    command = fenced(
        arguments, stage=folder / "stage", out=folder / "out", outputs=outputs, model=folder / "model", limits=limits
    )
    result = ToolRunner().run(
        ToolCommand(
            argv=command, folder=folder, logs=folder / "logs", env=clean_environment(PYTHONPATH=str(IMPORT_ROOT)),
            timeout=timeout, tree_memory_limit=limits.memory_bytes, tree_cpu_limit=limits.cpu_seconds,
            log_limit=1 << 16, plain_text=True,
        )
    )  # fmt: skip
    came = sorted(str(path.relative_to(folder / "out")) for path in (folder / "out").rglob("*") if path.is_file())
    size = result.stdout.stat().st_size + result.stderr.stat().st_size
    return Ended(
        str(result.outcome), result.exit_code, result.tail, result.left_behind, tuple(came), result.seconds, size
    )


def as_ordinary_user(
    folder: Path, arguments: Sequence[str], *, limits: FenceLimits = SMALL, outputs: Sequence[str] = ()
) -> Ended:
    """The same by somebody who is not root, where the tests are run by root."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, ORDINARY, ORDINARY)
    helper = IMPORT_ROOT / "tests" / "fixtures" / "as_ordinary_user.py"
    given = json.dumps({"limits": asdict(limits), "outputs": list(outputs)})
    module = (sys.executable, "-m", "tests.hostile.behind_fence")
    command = [sys.executable, str(helper), *module, given, str(folder), *arguments]
    environment = clean_environment(PYTHONPATH=str(IMPORT_ROOT), PENSTOCK_CANARY="canary")
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, cwd=IMPORT_ROOT)
    assert answer.returncode == 0, answer.stderr
    fields = json.loads(answer.stdout)
    return Ended(**fields | {"outputs": tuple(fields["outputs"])})


def main() -> None:
    given = json.loads(sys.argv[1])
    limits = FenceLimits(**given["limits"])
    ended = behind_fence(Path(sys.argv[2]), sys.argv[3:], limits=limits, outputs=given["outputs"])
    print(json.dumps(asdict(ended)))


if __name__ == "__main__":
    main()
