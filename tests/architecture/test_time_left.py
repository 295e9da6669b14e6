"""Suites that run out of time, tiny ones: what did not run is named, and no process of theirs stays behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.processes import working_in

ROOT = Path(__file__).resolve().parents[2]
# A make that runs these tests speaks to the one that they run: it would say which folder it enters and leaves.
OF_MAKE = ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")
OUTSIDE = {
    name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_TESTS_") and name not in OF_MAKE
}
ENVIRONMENT = {**OUTSIDE, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PLUGINS = ("-q", "-p", "xdist.plugin", "-p", "tests.fixtures.time_left", "-p", "no:cacheprovider")
SUITES = ROOT / ".ci" / "suites.py"
QUICK = "def test_quick():\n    pass\n"
FAILS = "def test_fails():\n    assert 2 == 3\n"
FLAKY = """
from pathlib import Path
def test_flaky():
    first = not Path("seen").exists()
    Path("seen").touch()
    assert not first
"""
SLEEPS = """
import os, signal, subprocess, sys, time, pytest
@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    yield process
    process.kill()
    process.wait()

def test_sleeps(child, request):
    child.wait()
"""
# The time is over when the test says so: a busy machine changes nothing about what ran before.
OVER = """    request.config.pluginmanager.get_plugin("time-left").until = 0
    os.kill(os.getpid(), signal.SIGALRM)
"""
RUNS_OUT = SLEEPS.replace("    child.wait()", OVER + "    child.wait()") + "def test_zero_after_it():\n    pass\n"
# It blocks the alarm and, once the one that hands out tests knows of all others, tells that one that the end is there.
DEAF = """
import os, signal, time
from pathlib import Path
def test_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while not Path("reported").exists():
        time.sleep(0.02)
    os.kill(os.getppid(), signal.SIGALRM)
    time.sleep(1000)
"""
REPORTED = """
import pytest
from pathlib import Path
@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if not hasattr(report, "node"):
        return  # this is a worker, not the one that hands out
    if report.when == "teardown":
        Path("reported").touch()
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")


def pytest_on(folder: Path, *arguments: str, seconds: float, grace: float = 100) -> subprocess.CompletedProcess[str]:
    """A session whose tests get so many seconds."""
    until = time.time() + seconds
    environment = {
        **ENVIRONMENT, "PENSTOCK_TESTS_UNTIL": str(until), "PENSTOCK_TESTS_END": str(until + grace),
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", *PLUGINS, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def unrun(output: str) -> list[str]:
    """The tests that the closing list names."""
    head = re.search(r"=+ (\d+) tests did not run: no time left =+\n", output)
    if head is None:
        return []
    named = output[head.end() :].splitlines()[: int(head[1])]
    return sorted(name.partition("::")[2] for name in named)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [(), ("-n", "2", "--dist", "worksteal")], ids=["alone", "side by side"])
def test_what_did_not_run_is_named_and_is_no_failure(tmp_path: Path, jobs: tuple[str, ...]) -> None:
    write(tmp_path, quick=QUICK, runs_out=RUNS_OUT)
    answer = pytest_on(tmp_path, *jobs, seconds=1000)
    assert answer.returncode == 0, answer.stdout
    assert unrun(answer.stdout) in (["test_sleeps"], ["test_sleeps", "test_zero_after_it"])
    assert jobs or len(unrun(answer.stdout)) == 2
    assert re.search(r"\n[12] passed, [12] skipped in ", answer.stdout)
    assert not working_in(tmp_path)


@pytest.mark.slow
def test_the_clock_ends_what_runs(tmp_path: Path) -> None:
    write(tmp_path, sleeps=SLEEPS)
    answer = pytest_on(tmp_path, seconds=4)
    assert answer.returncode == 0, answer.stdout
    assert unrun(answer.stdout) == ["test_sleeps"]
    assert not working_in(tmp_path)


def test_after_the_time_nothing_begins(tmp_path: Path) -> None:
    write(tmp_path, quick=QUICK, fails=FAILS)
    answer = pytest_on(tmp_path, seconds=-1)
    assert answer.returncode == 0, answer.stdout
    assert unrun(answer.stdout) == ["test_fails", "test_quick"]
    assert "\n2 skipped in " in answer.stdout


def test_with_time_enough_nothing_is_said(tmp_path: Path) -> None:
    write(tmp_path, quick=QUICK)
    answer = pytest_on(tmp_path, seconds=1000)
    assert answer.returncode == 0, answer.stdout
    assert "did not run" not in answer.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("other", "code"), [(QUICK, 0), (FAILS, 1)])
def test_what_cannot_be_interrupted_ends_the_session(tmp_path: Path, other: str, code: int) -> None:
    write(tmp_path, deaf=DEAF, other=other)
    (tmp_path / "conftest.py").write_text(REPORTED)
    answer = pytest_on(tmp_path, "-n", "2", seconds=1000)
    assert answer.returncode == code, answer.stdout
    assert unrun(answer.stdout) == ["test_deaf"]
    assert ("1 failed" in answer.stdout) == bool(code)
    assert not working_in(tmp_path)


@pytest.mark.slow
def test_what_no_clock_interrupts_is_left_behind_at_the_end(tmp_path: Path) -> None:
    write(tmp_path, deaf=DEAF)
    answer = pytest_on(tmp_path, "-n", "1", seconds=4, grace=1)
    assert answer.returncode == 0, answer.stdout
    too_late = ("the tests were not even collected: no time left", "bringing up nodes...\n!!!")
    assert unrun(answer.stdout) == ["test_deaf"] or any(words in answer.stdout for words in too_late)
    assert not working_in(tmp_path)


def suites_on(folder: Path, *arguments: str, lint: str = "true") -> subprocess.CompletedProcess[str]:
    """The runner, in a folder whose Makefile runs tiny suites."""
    options = " ".join(PLUGINS)
    kept = options.replace(" -p no:cacheprovider", "")
    (folder / "Makefile").write_text(
        f"lint:\n\t{lint}\n"
        f"test:\n\t{sys.executable} -m pytest {options} test_fast.py\n"
        f"test-slow:\n\t{sys.executable} -m pytest {kept} -n 2 test_slow.py\n"
        f"test-slow-again:\n\t{sys.executable} -m pytest {kept} -n 0 --lf --lfnf none test_slow.py\n"
    )
    return subprocess.run(
        [sys.executable, SUITES, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )


def test_the_runner_sums_both_suites(tmp_path: Path) -> None:
    write(tmp_path, fast=QUICK + "def test_two():\n    pass\n", slow=QUICK)
    answer = suites_on(tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert re.match(r"1 passed in [\d.]+s( \(.*\))?$", answer.stdout.splitlines()[-2])
    assert answer.stdout.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"


@pytest.mark.slow
def test_the_runner_says_what_did_not_run_and_succeeds(tmp_path: Path) -> None:
    write(tmp_path, fast=QUICK, slow=RUNS_OUT)
    answer = suites_on(tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert "test_sleeps" in unrun(answer.stdout)
    assert re.search(r"\n[12] slow tests did not run for lack of time", answer.stdout)
    assert re.fullmatch(r"[12] passed, 0 failed, [12] skipped", answer.stdout.splitlines()[-1])
    assert not working_in(tmp_path)


@pytest.mark.slow
def test_a_slow_test_that_passes_alone_is_said_and_no_failure(tmp_path: Path) -> None:
    write(tmp_path, fast=QUICK, slow=FLAKY + QUICK)
    answer = suites_on(tmp_path)
    assert answer.returncode == 0, answer.stdout
    assert "1 slow tests failed beside others, as named above, and passed alone" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"
    write(tmp_path, slow=FLAKY.replace("seen", "not-seen") + FAILS)
    answer = suites_on(tmp_path)
    assert answer.returncode == 1, answer.stdout
    assert answer.stdout.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"


@pytest.mark.slow
def test_the_runner_gives_slow_tests_their_time_and_no_more(tmp_path: Path) -> None:
    write(tmp_path, fast=QUICK, slow=SLEEPS)
    answer = suites_on(tmp_path, "--slow", "4")
    assert answer.returncode == 0, answer.stdout
    assert unrun(answer.stdout) == ["test_sleeps"]
    assert answer.stdout.splitlines()[-1] == "1 passed, 0 failed, 1 skipped"
    assert not working_in(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fast", "slow", "last"), [(QUICK, FAILS, "1 passed, 1 failed"), (FAILS, QUICK, "0 passed, 1")]
)
def test_the_runner_fails_where_a_test_fails(tmp_path: Path, fast: str, slow: str, last: str) -> None:
    write(tmp_path, fast=fast, slow=slow)
    answer = suites_on(tmp_path)
    assert answer.returncode == 1, answer.stdout
    assert answer.stdout.splitlines()[-1].startswith(last)


@pytest.mark.slow
def test_the_runner_fails_where_lint_fails_and_ends_what_hangs(tmp_path: Path) -> None:
    write(tmp_path, fast=QUICK, slow=QUICK)
    assert suites_on(tmp_path, lint="false").returncode == 1
    answer = suites_on(tmp_path, "--whole", "3", lint="sleep 1000")
    assert answer.returncode == 1
    assert "is ended: it did not end within" in answer.stdout
    assert not working_in(tmp_path)
