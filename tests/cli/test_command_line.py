"""The command line as such: help, wrong words, missing parts, errors and their exit codes."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiler.collecting import seldom_collected
from penstock.compiler.errors import PenstockError
from penstock.services.cli import doctor as doctor_module
from penstock.services.cli.exit_codes import SERVICE_ERROR
from penstock.services.cli.main import COMMANDS, run
from penstock.services.settings import SettingError

ROOT = Path(__file__).resolve().parents[2]


def penstock(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock.services.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | environment, timeout=600)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "3 constraints unmet" in shown


HEAVY = ("torch", "torch_mlir", "optuna", "scipy", "numba", "sqlalchemy", "penstock.db")
LIGHTLY = f"""
import sys
from penstock.services.cli.main import run
code = run(sys.argv[1:])
print("loaded:", *[name for name in {HEAVY!r} if name in sys.modules])
sys.exit(code)
"""


def loaded_by(*arguments: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The command in a process of its own, and which of the libraries that take seconds to load it loaded."""
    command = [sys.executable, "-c", LIGHTLY, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    return ended, ended.stdout.rpartition("loaded:")[2].split()


def test_help_loads_nothing_that_takes_seconds() -> None:
    ended, loaded = loaded_by("--help")
    assert (ended.returncode, loaded) == (0, [])


def test_a_model_that_is_there_loads_pytorch(tmp_path: Path) -> None:
    ended, loaded = loaded_by("compile", "examples/residual_mlp.py:no_such_model", "-o", str(tmp_path))
    assert ended.returncode == 2
    assert "torch" in loaded, "or what is counted here is not what takes the time"
    assert not {"penstock.db", "sqlalchemy"} & set(loaded), "what compiles without the service needs no database"


def test_garbage_is_looked_for_less_often_while_a_command_runs() -> None:
    def collections() -> int:
        return sum(generation["collections"] for generation in gc.get_stats())

    here, usual = gc.get_threshold(), (700, 10, 10)
    gc.set_threshold(*usual)  # Python's own: while tests run it is that of a command
    try:
        with seldom_collected():
            before = collections()
            assert [[] for _ in range(10 * usual[0])]
            assert collections() == before
        assert gc.get_threshold() == usual
        assert [[] for _ in range(10 * usual[0])]
        assert collections() > before, "or nothing was held back"
    finally:
        gc.set_threshold(*here)


@pytest.mark.parametrize("command", ["compile", "explore", "submit"])
def test_a_model_that_is_not_there_is_noticed_before_pytorch_is_loaded(command: str) -> None:
    ended, loaded = loaded_by(command, "nowhere/net.py:model")
    assert (loaded, ended.returncode, ended.stderr.count("\n")) == ([], 2, 1)
    assert "nowhere/net.py" in ended.stderr


@pytest.mark.parametrize("command", ["compile", "explore"])
def test_a_model_that_the_zoo_does_not_have_is_noticed_before_pytorch_is_loaded(command: str) -> None:
    ended, loaded = loaded_by(command, "zoo:mpl")
    assert (loaded, ended.returncode, ended.stderr.count("\n")) == ([], 2, 1)
    assert "the zoo has no model 'mpl' - it has: " in ended.stderr


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert f"Usage: penstock {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["subbmit"], "penstock: no such command 'subbmit'; did you mean submit?\n"),
        (["frobnicate"], "penstock: no such command 'frobnicate'; see penstock --help\n"),
        (["--verbose"], "penstock: no such option --verbose before the command; see penstock --help\n"),
        (["up", "--colour"], "penstock: No such option: --colour; see penstock up --help\n"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert capsys.readouterr().err == line


def test_a_bad_value_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--port", "many"]) == 2
    said = capsys.readouterr().err
    assert "--port" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (PenstockError(code="x", what="too big", limit="at most 3", hint="shrink it"), 1, "too big (at most 3) - "),
        (SettingError("PENSTOCK_X is wrong"), 2, "PENSTOCK_X is wrong"),
        (ModuleNotFoundError("no", name="torch"), 1, "pip install 'penstock[compiler]'"),
        (ModuleNotFoundError("no", name="sklearn.datasets"), 1, "pip install 'penstock[examples]'"),
        (MemoryError(), 1, "this machine's memory is not enough - close other programs"),
        (MemoryError("Unable to allocate 9 TiB"), 1, "not enough: Unable to allocate 9 TiB - close"),
        (KeyError("lost"), 1, "internal error: KeyError: 'lost' - set PENSTOCK_DEBUG=1"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_and_a_code(
    error: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(doctor_module, "doctor", fail)
    assert run(["doctor"]) == code
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_an_exit_code_of_the_error_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Exception):
        exit_code = SERVICE_ERROR

    def fail() -> None:
        raise Away("gone")

    monkeypatch.setattr(doctor_module, "doctor", fail)
    assert run(["doctor"]) == 6


def test_a_debugger_gets_the_traceback() -> None:
    answer = penstock("up", PENSTOCK_HOME="/dev/null/x", PENSTOCK_DEBUG="1")
    assert "Traceback" in answer.stderr
    assert "Traceback" not in penstock("up", PENSTOCK_HOME="/dev/null/x", PENSTOCK_DEBUG="").stderr


@pytest.mark.parametrize("words", ["doctor | true", "--help | true", "--help >&-"])
def test_who_does_not_listen_gets_no_message(words: str) -> None:
    command = f"{sys.executable} -m penstock.services.cli.main {words}"
    answer = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert answer.stderr == ""


def test_doctor_tells_what_is_there() -> None:
    answer = penstock("doctor", "--json")
    said = json.loads(answer.stdout)
    checks = {check["name"]: check for check in said["checks"]}
    assert answer.returncode == (0 if said["ok"] else 1)
    assert checks["python"]["state"] == "ok"
    assert checks["[compiler]"]["state"] == "ok"
    assert {"machine", "c++", "user", "disk", "postgres", "redis", "port", "vitis", "fence"} <= set(checks)
    assert all(check["what"] for check in said["checks"])
    schema = json.loads((ROOT / "docs" / "doctor.schema.json").read_text())
    assert set(said) == set(schema["required"])
    item = schema["properties"]["checks"]["items"]
    assert all(set(check) == set(item["required"]) for check in said["checks"])
    assert {check["state"] for check in said["checks"]} <= set(item["properties"]["state"]["enum"])


def test_doctor_finds_what_is_missing(tmp_path: Path) -> None:
    answer = penstock("doctor", PATH=str(tmp_path), PENSTOCK_SERVERS="nowhere", PENSTOCK_HOME=str(tmp_path))
    assert answer.returncode == 1
    problems = [line.split()[1] for line in answer.stdout.splitlines() if line.startswith("problem")]
    assert problems == ["c++", "postgres", "redis"]
    assert "absent: no csynth" in answer.stdout
    assert re.search(r"^(ok|limited) +fence ", answer.stdout, re.MULTILINE), "it needs no program"
