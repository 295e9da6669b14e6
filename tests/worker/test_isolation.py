"""What a submitted model can reach while it is imported: its own folder, and no more."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.services.settings import Settings
from penstock.services.steps import isolation
from penstock.services.steps.isolation import isolated, isolation_works, socket_folders

needs_namespaces = pytest.mark.skipif(not isolation_works(), reason="user namespaces are switched off here")

SPY = """
import os, socket, sys
home, outside, port, pid = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
reached = []
def attempt(name, act):
    try:
        act()
    except Exception:
        return
    reached.append(name)
attempt("secret", lambda: open(home + "/secret.key").read())
attempt("other step", lambda: open(home + "/work/other/data").read())
attempt("socket", lambda: socket.socket(socket.AF_UNIX).connect(outside + "/s"))
attempt("network", lambda: socket.create_connection(("127.0.0.1", port), 1))
attempt("process", lambda: os.kill(pid, 0))
attempt("mount", lambda: os.system(f"umount {home}") == 0 or 1 / 0)
open("mine", "w").write("written")
print(" ".join(reached))
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    home = tmp_path / "home"
    for folder in ("work/step", "work/other"):
        (home / folder).mkdir(parents=True)
    (home / "secret.key").write_text("secret")
    (home / "work" / "other" / "data").write_text("someone else's")
    outside = tmp_path / "o"
    outside.mkdir()
    return Settings(home=home, database_url=f"postgresql://p@/d?host={outside}", redis_url=f"unix://{outside}/s")


def spy(settings: Settings, fenced: bool, port: int) -> set[str]:
    step, outside = settings.home / "work" / "step", socket_folders(settings)[0]
    arguments = [sys.executable, "-c", SPY, str(settings.home), str(outside), str(port), str(os.getpid())]
    command = isolated(arguments, settings, step, required=True) if fenced else arguments
    answer = subprocess.run(command, cwd=step, capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, answer.stderr
    assert (step / "mine").read_text() == "written", "its own folder is the real one"
    return set(answer.stdout.replace("other step", "other-step").split())


@needs_namespaces
def test_a_fenced_process_reaches_nothing_of_the_service(settings: Settings) -> None:
    outside = socket_folders(settings)[0]
    with socket.socket(socket.AF_UNIX) as private, socket.create_server(("127.0.0.1", 0)) as public:
        private.bind(str(outside / "s"))
        private.listen()
        port = public.getsockname()[1]
        assert spy(settings, fenced=False, port=port) >= {"secret", "other-step", "socket", "network", "process"}
        assert spy(settings, fenced=True, port=port) == set()


@needs_namespaces
def test_the_exit_code_of_a_fenced_process_is_its_own(settings: Settings) -> None:
    command = isolated(["sh", "-c", "exit 7"], settings, settings.home / "work" / "step", required=True)
    assert subprocess.run(command).returncode == 7


def test_without_namespaces_only_trusted_code_runs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "isolation_works", lambda: False)
    step = settings.home / "work" / "step"
    assert isolated(["true"], settings, step, required=False) == ["true"]
    with pytest.raises(PenstockError, match="cannot fence in untrusted models"):
        isolated(["true"], settings, step, required=True)
