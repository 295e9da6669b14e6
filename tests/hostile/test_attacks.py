"""What runs behind the fence reaches nothing outside, and is held to each of its limits."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from penstock import IMPORT_ROOT
from penstock.services.steps.fence.probe import fence_problem
from tests.fixtures.waiting import wait_until
from tests.hostile.behind_fence import SMALL, as_ordinary_user, behind_fence, open_folder

pytestmark = pytest.mark.skipif(bool(fence_problem()), reason=f"no fence here: {fence_problem()}")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
ATTACKS = Path(__file__).parent / "attacks.py"


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as found:
        yield found


@pytest.fixture
def canaries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Files in the places that must stay closed: a home, the service's data, the temporary folder."""
    with open_folder() as home:
        found = [home / "secret.key", home / "work" / "other-step" / "model.py", Path.home() / ".penstock-canary"]
        for path in found:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("canary")
            path.chmod(0o666)
        monkeypatch.setenv("PENSTOCK_CANARY", "canary")
        yield found
        assert [path.read_text() for path in found] == ["canary"] * len(found)
        found[-1].unlink()


def hostile(folder: Path, canaries: list[Path], port: int) -> list[str]:
    (folder / "model").mkdir()
    shutil.copy(ATTACKS, folder / "model")
    return ["/model/attacks.py", os.pathsep.join(map(str, canaries)), str(os.getpid()), str(port)]


@pytest.mark.parametrize("ordinary", [False, pytest.param(True, marks=needs_root)], ids=["own-user", "ordinary-user"])
def test_nothing_outside_is_reached(folder: Path, canaries: list[Path], ordinary: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = hostile(folder, canaries, listener.getsockname()[1])
        ended = as_ordinary_user(folder, arguments) if ordinary else behind_fence(folder, arguments)
    assert "reached: nothing" in ended.said
    assert (ended.outcome, ended.left_behind, ended.outputs) == ("ok", 0, ())


def test_the_attacks_would_succeed_without_the_fence(folder: Path, canaries: list[Path]) -> None:
    """Else they would prove nothing: those that do no harm."""
    names = [f"{act} {canary}" for canary in canaries for act in ("read", "list")]
    names += ["unix socket", "network socket", "socket pair", "password file of the host", "secret in the environment"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = [*hostile(folder, canaries, listener.getsockname()[1])[1:], ",".join(names)]
        command = [sys.executable, "-P", str(ATTACKS), *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder)
    assert all(name in answer.stdout for name in names), answer


LIMITS = {
    "processes": (
        "import os\nfor n in range(400):\n if os.fork() == 0:\n  import time; time.sleep(1000)", "BlockingIOError",
    ),
    "memory of one": ("x = []\nwhile True: x.append(bytearray(1 << 26))", "MemoryError"),
    "the whole tmp": ("f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))", "File too large"),
    "the whole out": ("f = open('/out/x', 'wb')\nwhile True: f.write(bytes(1 << 20))", "File too large"),
    "the whole tmp by many": (
        "n = 0\nwhile True:\n n += 1\n open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))", "No space left",
    ),
    "many files": ("n = 0\nwhile True:\n n += 1\n open(f'/tmp/{n}', 'w').close()", "No space left"),
    "open files": ("x = [open('/dev/null') for n in range(5000)]", "Too many open files"),
    "a crash": ("import ctypes\nctypes.string_at(0)", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_ends_it(folder: Path, name: str) -> None:
    script, said = LIMITS[name]
    ended = behind_fence(folder, ["-c", script])
    assert ended.outcome != "ok"
    assert said in ended.said
    assert not ended.outputs


def test_memory_counts_for_all_processes_together(folder: Path) -> None:
    script = "import os, time\nfor n in range(6): os.fork()\nx = b'1' * (60 << 20)\ntime.sleep(1000)"
    ended = behind_fence(folder, ["-c", script], limits=replace(SMALL, processes=128))
    assert ended.outcome == "out-of-memory"
    assert_nothing_lives(folder)


def test_computing_counts_for_all_processes_together(folder: Path) -> None:
    script = "import os\nfor n in range(3): os.fork()\nwhile True: pass"
    ended = behind_fence(folder, ["-c", script], limits=replace(SMALL, cpu_seconds=2))
    assert ended.outcome == "timeout" or ended.exit_code == 152
    assert_nothing_lives(folder)


def test_sleeping_ends_by_the_clock(folder: Path) -> None:
    daemon = "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(1000)\ntime.sleep(1000)"
    ended = behind_fence(folder, ["-c", daemon], timeout=1.0)
    assert ended.outcome == "timeout"
    assert_nothing_lives(folder)


def test_daemons_end_with_the_first_process(folder: Path) -> None:
    daemon = "import os, time\nif os.fork() == 0:\n os.setsid()\n os.fork()\n time.sleep(1000)"
    ended = behind_fence(folder, ["-c", daemon])
    assert (ended.outcome, ended.left_behind) == ("ok", 0)
    assert_nothing_lives(folder)


def test_a_flood_of_words_and_words_for_terminals(folder: Path) -> None:
    script = (
        "import sys\nfor n in range(200): sys.stdout.buffer.write(b'x' * (1 << 16))\n"
        "sys.stdout.buffer.write(b'\\x1b]0;evil\\x07\\x1b[2Jend \\xc2\\x9b31m \\xe2\\x80\\xae\\r\\n')"
    )
    ended = behind_fence(folder, ["-c", script])
    assert ended.outcome == "ok"
    assert ended.log_bytes < 1 << 17
    log = (folder / "logs" / "stdout.log").read_bytes()
    assert b"end" in log
    assert all(byte in b"\n\t" or 32 <= byte < 127 for byte in log)
    assert "\x1b" not in ended.said


OUTPUTS = ("plain", "link", "hard", "below/deep", "large", "folder")


def test_only_plain_files_come_out(folder: Path) -> None:
    script = (
        "import os\nos.mkdir('/out/below'); open('/out/below/deep', 'w').write('d'); open('/out/plain', 'w')\n"
        "open('/out/unasked', 'w').write('x'); os.mkdir('/out/folder')"
    )
    assert behind_fence(folder, ["-c", script], outputs=OUTPUTS).outputs == ("below/deep", "plain")


@pytest.mark.parametrize(
    "script",
    [
        "import os; os.symlink('/etc/passwd', '/out/link')",
        "import os; open('/out/a', 'w').write('x'); os.link('/out/a', '/out/hard')",
        "import os; os.mkdir('/tmp/d'); open('/tmp/d/deep', 'w').write('x'); os.symlink('/tmp/d', '/out/below')",
        "import os; os.truncate(os.open('/out/large', os.O_CREAT | os.O_RDWR), 1 << 21)\n"
        "os.truncate(os.open('/out/plain', os.O_CREAT | os.O_RDWR), 3 << 20)",
    ],
    ids=["symlink", "hard link", "folder by a symlink", "holes that make it large"],
)  # fmt: skip
def test_no_other_output_comes_out(folder: Path, script: str) -> None:
    ended = behind_fence(folder, ["-c", script], outputs=OUTPUTS)
    assert set(ended.outputs) <= {"plain"}
    assert "the output" in ended.said


def test_where_the_kernel_forbids_the_fence_the_reason_is_told() -> None:
    """As in a container: a filter of system calls that refuses new namespaces; the command is not run."""
    code = (
        "from penstock.services.steps.fence import linux, probe, seccomp\n"
        "linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)\nseccomp.install()\n"
        "print(probe.fence_problem(), probe.fence_advice())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, cwd=IMPORT_ROOT)
    assert "new namespaces: Operation not permitted" in answer.stdout, answer
    assert "PENSTOCK_FENCE=off" in answer.stdout or "sysctl" in answer.stdout


def assert_nothing_lives(folder: Path) -> None:
    """No process of the fence is left: their command lines name the folder's stage."""

    def none() -> bool:
        return not any(str(folder) in " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))

    wait_until(none)
