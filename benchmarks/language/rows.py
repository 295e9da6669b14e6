"""Runs rows of the benchmark `llm`, each in a process of its own; how one ended badly is its row's `reason`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.registry import Value

ROOT = Path(__file__).resolve().parents[2]
CPU_SECONDS = 600
"""Of the processor that one row may take."""
PATIENCE, LEAST_PATIENCE = 20, 600
"""How many times as long it may take by the clock, on a machine that does other things as well; seconds in any case."""
Row = Mapping[str, Value]
Found = Callable[[str, Row], None]


def run_rows(names: Sequence[str], found: Found) -> None:
    """Rows that are timed run alone, then the others two at a time where there are two cores."""
    timed = [name for name in names if name.startswith("compile/")]
    for name in timed:
        found(name, run_row(name))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(min(2, cores)) as pool:
        others = [name for name in names if name not in timed]
        running = {pool.submit(run_row, name): name for name in others}
        for done in as_completed(running):
            found(running[done], done.result())


def run_row(name: str, seconds: int = CPU_SECONDS) -> Row:
    """`wall_s` is by the clock, with what starting Python and PyTorch takes."""
    patience = max(LEAST_PATIENCE, PATIENCE * seconds)
    part, began = {"part": name.partition("/")[0], "name": name}, time.monotonic()
    command = [sys.executable, "-m", "benchmarks.language.part", name, str(seconds)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        stdout, stderr = process.communicate(timeout=patience)
        reason = _reason(process.returncode, stderr, seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        stdout, reason = "", f"not done after {patience} s"
    except BaseException:  # Ctrl-C: nothing outlives the benchmark
        _end(process)
        raise
    row: Row = {"evidence": None, "reason": reason} if reason else json.loads(stdout.splitlines()[-1])
    return {**part, **row, "wall_s": round(time.monotonic() - began, 1)}


def _end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _reason(code: int, stderr: str, seconds: int) -> str | None:
    if code == 0:
        return None
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"ended after {seconds} s of processor time" if code == -signal.SIGXCPU else "killed: out of memory?"
    return (stderr.strip().splitlines() or [f"exit code {code}"])[-1]
