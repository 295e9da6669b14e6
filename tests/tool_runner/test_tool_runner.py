"""The tool runner leaves nothing alive, bounds everything, and says how a tool ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.profiling.tool_runner import (
    Cancellable,
    ToolCommand,
    ToolOutcome,
    ToolProcess,
    ToolResult,
    ToolRunner,
    clean_environment,
)
from tests.fixtures.processes import working_in
from tests.fixtures.waiting import QUIET_SECONDS, wait_until

# Traps TERM, forks a grandchild in a session of its own whose parent ends at once, and another in the
# background; each writes its pid. This is what launchers of vendor tools look like from outside.
STUBBORN = """
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ >> pids; (trap "" TERM; echo child >> pids; sleep 1000) & sleep 1000' &
sh -c '(setsid sh -c "echo \\$\\$ >> pids; sleep 1000" &) ; exit'
echo $$ >> pids
touch ready
while :; do sleep 1; done
"""


def command(folder: Path, *argv: str, **changes: Any) -> ToolCommand:
    return ToolCommand(argv=argv, folder=folder, logs=folder / "logs", **changes)


def run(folder: Path, *argv: str, **changes: Any) -> ToolResult:
    return ToolRunner().run(command(folder, *argv, **changes))


def shell(folder: Path, script: str, **changes: Any) -> ToolResult:
    return run(folder, "sh", "-c", script, **changes)


def test_a_tool_that_succeeds(tmp_path: Path) -> None:
    result = shell(tmp_path, "echo out; echo err >&2")
    assert result.ok
    assert (result.exit_code, result.left_behind) == (0, 0)
    assert result.stdout.read_text() == "out\n"
    assert result.stderr.read_text() == "err\n"
    assert sorted(result.tail.split()) == ["err", "out"]
    assert result.peak_rss is not None
    assert result.peak_rss > 0


def test_folders_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("work").mkdir()
    result = shell(Path("work"), "pwd; echo err >&2")
    assert result.ok
    assert result.stdout == tmp_path / "work" / "logs" / "stdout.log"
    assert result.stdout.read_text().strip() == str(tmp_path / "work")
    assert result.stderr.read_text() == "err\n"


def test_exit_codes_and_signals_are_told_apart(tmp_path: Path) -> None:
    failed = shell(tmp_path, "exit 7")
    assert (failed.outcome, failed.exit_code) == (ToolOutcome.EXIT, 7)
    crashed = shell(tmp_path, "kill -SEGV $$")
    assert (crashed.outcome, crashed.signal) == (ToolOutcome.SIGNAL, signal.SIGSEGV)
    assert "SIGSEGV" in crashed.describe()
    killed = shell(tmp_path, "kill -KILL $$")
    assert killed.outcome is ToolOutcome.OUT_OF_MEMORY


def test_a_missing_tool_is_not_found(tmp_path: Path) -> None:
    result = run(tmp_path, "no-such-tool-anywhere")
    assert result.outcome is ToolOutcome.NOT_FOUND
    assert result.error("vitis_hls").one_line().startswith("vitis_hls: vitis_hls was not found")


def test_a_file_that_cannot_be_executed_is_not_started(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("not a program")
    script.chmod(0o755)
    assert run(tmp_path, str(script)).outcome is ToolOutcome.NOT_STARTED


def test_a_deadline_ends_the_tool(tmp_path: Path) -> None:
    result = shell(tmp_path, "sleep 1000", timeout=0.3)
    assert result.outcome is ToolOutcome.TIMEOUT
    assert not working_in(tmp_path)


def test_waiting_for_a_processor_is_no_time_of_the_tool(tmp_path: Path) -> None:
    """It would end in its time alone, and shares one processor with six others; one that sleeps has no more time."""
    one = f"import os, time; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\n"
    spin = [sys.executable, "-c", one + "while True: pass"]
    others = [subprocess.Popen(spin, start_new_session=True) for _ in range(6)]
    try:
        computes = one + "while time.process_time() < 1: pass"
        result = run(tmp_path, sys.executable, "-c", computes, timeout=2.5, tree_cpu_limit=QUIET_SECONDS)
        assert result.ok, result.describe()
        assert run(tmp_path, sys.executable, "-c", computes, timeout=2.5).outcome is ToolOutcome.TIMEOUT
        sleeps = run(tmp_path, "sleep", "1000", timeout=0.3, tree_cpu_limit=QUIET_SECONDS)
        assert sleeps.outcome is ToolOutcome.TIMEOUT
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_a_memory_limit_holds(tmp_path: Path) -> None:
    hungry = "b = bytearray(512 << 20)"
    result = run(tmp_path, sys.executable, "-c", hungry, memory_limit=256 << 20)
    assert result.outcome is ToolOutcome.OUT_OF_MEMORY
    assert run(tmp_path, sys.executable, "-c", hungry).ok


def test_the_memory_of_a_whole_tree_is_limited(tmp_path: Path) -> None:
    """Pages that children share with their parent count once; what each of them writes anew counts for each."""
    shared = "import os, time\nheld = bytearray(os.urandom(1)) * (160 << 20)\n"
    waiting = "[os.fork() or (time.sleep(1.2), os._exit(0)) for _ in range(3)]\ntime.sleep(1.6)"
    result = run(tmp_path, sys.executable, "-c", shared + waiting, tree_memory_limit=256 << 20)
    assert result.ok, result.describe()
    own = "[os.fork() or (bytearray(os.urandom(1)) * (80 << 20), time.sleep(1000)) for _ in range(3)]\ntime.sleep(1000)"
    result = run(tmp_path, sys.executable, "-c", shared + own, tree_memory_limit=256 << 20, timeout=QUIET_SECONDS)
    assert (result.outcome, result.over_memory) == (ToolOutcome.OUT_OF_MEMORY, True)
    assert "at most 256 are allowed" in result.describe()


def test_an_endless_log_is_bounded_and_keeps_both_ends(tmp_path: Path) -> None:
    result = shell(tmp_path, "echo first; seq 1 400000; echo last", log_limit=10_000)
    text = result.stdout.read_text()
    assert len(text) < 10_200
    assert text.startswith("first\n1\n2\n")
    assert text.endswith("400000\nlast\n")
    assert "bytes left out" in text
    assert result.tail.endswith("last\n")


def test_binary_garbage_in_the_log_is_survived(tmp_path: Path) -> None:
    result = shell(tmp_path, "head -c 100000 /dev/urandom")
    assert result.ok
    assert result.stdout.stat().st_size == 100_000


def test_the_environment_is_exactly_what_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", "postgresql://secret")
    result = shell(tmp_path, "env; pwd", env=clean_environment(EXTRA="1"))
    text = result.stdout.read_text()
    assert "secret" not in text
    assert "EXTRA=1" in text
    assert str(tmp_path) in text


def test_the_temporary_folder_is_private_and_goes_with_the_tool(tmp_path: Path) -> None:
    result = shell(tmp_path, 'echo "$TMPDIR"; touch "$TMPDIR/x"')
    scratch = Path(result.stdout.read_text().strip())
    assert scratch.parent == tmp_path
    assert not scratch.exists()


def test_what_a_tool_leaves_running_is_killed_when_it_ends(tmp_path: Path) -> None:
    result = shell(tmp_path, "(setsid sleep 1000 &) ; exit 0")
    assert result.ok
    assert result.left_behind == 1
    assert not working_in(tmp_path)


def test_a_polite_tool_may_clean_up_at_a_cancel(tmp_path: Path) -> None:
    script = "trap 'touch cleaned; exit 0' TERM; touch ready; while :; do sleep 0.05; done"
    process = ToolProcess(command(tmp_path, "sh", "-c", script))
    wait_until((tmp_path / "ready").exists)
    process.cancel()
    result = process.wait(QUIET_SECONDS)
    assert result is not None
    assert result.outcome is ToolOutcome.CANCELLED
    assert (tmp_path / "cleaned").exists()


def test_cancelling_a_stubborn_tree_leaves_nothing_alive(tmp_path: Path) -> None:
    runner = ToolRunner()
    results: list[ToolResult] = []
    thread = threading.Thread(
        target=lambda: results.append(runner.run(command(tmp_path, "sh", "-c", STUBBORN, grace=0.5)))
    )
    thread.start()
    wait_until(lambda: (tmp_path / "ready").exists() and len((tmp_path / "pids").read_text().split()) >= 4)
    assert len(working_in(tmp_path)) >= 4
    runner.cancel_all()
    thread.join(QUIET_SECONDS)
    assert [r.outcome for r in results] == [ToolOutcome.CANCELLED]
    assert not working_in(tmp_path)
    after = runner.run(command(tmp_path, "touch", "never"))
    assert after.outcome is ToolOutcome.CANCELLED
    assert not (tmp_path / "never").exists()


OWNER = """
    import sys
    from pathlib import Path
    from penstock.profiling.tool_runner import ToolCommand, ToolRunner
    folder = Path(sys.argv[1])
    ToolRunner().run(ToolCommand(("sh", "-c", sys.argv[2]), folder, folder / "logs", grace=0.5))
"""


def test_a_watch_that_raises_ends_the_tool_first(tmp_path: Path) -> None:
    """A step that is cancelled says so from the watch; its folder is removed next, so nothing may still write there."""

    def watch(_: Cancellable) -> None:
        if (tmp_path / "ready").exists():
            raise InterruptedError("enough")

    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(InterruptedError):
        ToolRunner().run(command(tmp_path, "sh", "-c", STUBBORN, grace=0.2), watch)
    assert not working_in(tmp_path)
    assert not list(tmp_path.glob("tmp-*"))
    assert set(os.listdir("/proc/self/fd")) == before


def test_kill_9_of_the_owner_leaves_nothing_alive(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(OWNER), str(tmp_path), STUBBORN])
    wait_until(lambda: (tmp_path / "ready").exists() and len((tmp_path / "pids").read_text().split()) >= 4)
    owner.kill()
    owner.wait()
    wait_until(lambda: not working_in(tmp_path))
    wait_until(lambda: not list(tmp_path.glob("tmp-*")))


def test_kill_9_of_the_supervisor_is_a_lost_tool_and_leaves_nothing_alive(tmp_path: Path) -> None:
    process = ToolProcess(command(tmp_path, "sh", "-c", STUBBORN))
    wait_until(lambda: (tmp_path / "ready").exists() and len((tmp_path / "pids").read_text().split()) >= 4)
    [supervisor] = [p for p in psutil.Process().children() if "supervise.py" in " ".join(p.cmdline())]
    supervisor.kill()
    result = process.wait(QUIET_SECONDS)
    assert result is not None
    assert result.outcome is ToolOutcome.LOST
    assert not working_in(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_can_run_a_tool_as_another_user(tmp_path: Path) -> None:
    folder = tmp_path
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    result = shell(folder, "id -u; id -G", user=(65534, 65534))
    assert result.stdout.read_text().split() == ["65534", "65534"]
