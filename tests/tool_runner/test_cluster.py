"""Tools as jobs of Slurm and of LSF, on a stand-in that prints what these print (batch.sh)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.errors import PenstockError
from penstock.profiling.tool_runner import Cancellable, ToolCommand, ToolOutcome, ToolResult
from penstock.profiling.tool_runner.cluster import SUBMISSIONS, ClusterRunner, version_of
from penstock.profiling.tool_runner.clusters import CLUSTERS, LSF, SLURM, Cluster, ClusterAnswer
from tests.fixtures.waiting import wait_until

NAMES = ("sbatch", "squeue", "sacct", "scancel", "bsub", "bjobs", "bkill")


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in's folder."""
    programs, folder = tmp_path / "bin", tmp_path / "batch"
    programs.mkdir()
    folder.mkdir()
    for name in NAMES:
        (programs / name).symlink_to(Path(__file__).with_name("batch.sh"))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("BATCH", str(folder))
    return folder


@pytest.fixture(params=sorted(CLUSTERS))
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return CLUSTERS[request.param]


def command(tmp_path: Path, script: str, **fields: Any) -> ToolCommand:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return ToolCommand(("sh", "-c", script), work, tmp_path / "logs", **fields)


def runner(cluster: Cluster) -> ClusterRunner:
    return ClusterRunner(cluster, ("--partition=fpga",) if cluster is SLURM else ("-q", "fpga"), poll=0.05)


def test_a_tool_runs_as_a_job_in_exactly_its_environment(batch: Path, cluster: Cluster, tmp_path: Path) -> None:
    asked = command(
        tmp_path, "echo $WORD; pwd; echo -${BATCH}-; exit 3",
        env={"PATH": os.environ["PATH"], "WORD": "it's"}, timeout=90.0, memory_limit=3 << 30,
    )  # fmt: skip
    result = runner(cluster).run(asked)
    assert (result.outcome, result.exit_code) == (ToolOutcome.EXIT, 3), result
    assert result.stdout.read_text() == f"it's\n{asked.folder}\n--\n"
    assert "job 4101" in result.note
    said = (batch / "4101" / "asked").read_text()
    words = ("--time=2", "--mem=3072M", "--partition=fpga") if cluster is SLURM else ("-W 2", "-M 3072MB", "-q fpga")
    assert all(word in said for word in words), said
    assert runner(cluster).run(command(tmp_path, "true")).ok


def test_a_job_whose_node_failed_is_submitted_again_and_not_for_ever(
    batch: Path, cluster: Cluster, tmp_path: Path
) -> None:
    (batch / "fate").write_text("NODE_FAIL\n")
    assert runner(cluster).run(command(tmp_path, "true")).ok
    assert (batch / "count").read_text() == "4102\n"

    def fail_again(_: Cancellable) -> None:
        (batch / "fate").write_text("NODE_FAIL\n")

    (batch / "fate").write_text("NODE_FAIL\n")
    result = runner(cluster).run(command(tmp_path, "true"), fail_again)
    assert (result.outcome, "its node failed" in result.note) == (ToolOutcome.LOST, True), result
    assert (batch / "count").read_text() == f"{4102 + SUBMISSIONS}\n"


def test_a_time_limit_is_one(batch: Path, cluster: Cluster, tmp_path: Path) -> None:
    (batch / "fate").write_text("TIMEOUT\n")
    assert runner(cluster).run(command(tmp_path, "true")).outcome is ToolOutcome.TIMEOUT


def test_a_cancelled_step_cancels_its_job(batch: Path, cluster: Cluster, tmp_path: Path) -> None:
    runs = runner(cluster)
    result = runs.run(command(tmp_path, "touch begun; sleep 1000"), lambda job: _when(tmp_path, runs.cancel_all))
    assert result.outcome is ToolOutcome.CANCELLED
    assert (batch / "4101" / "end").read_text() == "CANCELLED\n"
    assert runs.run(command(tmp_path, "true")).outcome is ToolOutcome.CANCELLED
    assert (batch / "count").read_text() == "4101\n", "a closed runner submits nothing"


def test_a_worker_that_comes_back_follows_the_job_that_is_there(batch: Path, cluster: Cluster, tmp_path: Path) -> None:
    asked = command(tmp_path, "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo done")
    first = runner(cluster)
    left = first.run(asked, lambda job: _when(tmp_path, lambda: first.cancel_all(leave=True)))
    assert (left.outcome, "goes on" in left.note) == (ToolOutcome.CANCELLED, True)
    (batch / "away").touch()  # a batch system that does not answer is no reason to give a job up
    results: list[ToolResult] = []
    second = threading.Thread(target=lambda: results.append(runner(cluster).run(asked)))
    second.start()
    (asked.folder / "go").touch()
    (batch / "away").unlink()
    second.join()
    assert results[0].ok
    assert results[0].stdout.read_text() == "done\n"
    assert (batch / "count").read_text() == "4101\n", "it was not submitted twice"


def test_what_the_cluster_refuses_says_why(batch: Path, tmp_path: Path) -> None:
    (batch / "refuse").touch()
    with pytest.raises(PenstockError, match="Invalid partition name") as refused:
        runner(SLURM).run(command(tmp_path, "true"))
    assert refused.value.code == "cluster-refused"


@pytest.mark.parametrize(
    ("cluster", "said", "state"),
    [
        (SLURM, "COMPLETING", "running"), (SLURM, "OUT_OF_MEMORY|0:125", "out-of-memory"),
        (SLURM, "CANCELLED+|0:0", "cancelled"), (SLURM, "PREEMPTED|0:0", "node-failed"), (SLURM, "", None),
        (LSF, "PEND|-|-", "waiting"), (LSF, "UNKWN|-|-", "running"),
        (LSF, "EXIT|137|TERM_MEMLIMIT: job killed after reaching LSF memory usage limit", "out-of-memory"),
        (LSF, "EXIT|2|-", "failed"), (LSF, "LSF is down. Please wait ...", None),
    ],
)  # fmt: skip
def test_answers_are_read_as_they_are_meant(cluster: Cluster, said: str, state: str | None) -> None:
    assert cluster.state(ClusterAnswer(0, said + "\n", "")) == state


@pytest.mark.usefixtures("batch")
def test_versions_are_found() -> None:
    assert version_of(SLURM) == "slurm 23.11.4"
    assert version_of(LSF) == "IBM Spectrum LSF 10.1.0.14, Jun 23 2023"


def _when(tmp_path: Path, do: object) -> None:
    wait_until(lambda: (tmp_path / "work" / "begun").exists())
    assert callable(do)
    do()
