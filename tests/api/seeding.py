"""Runs in every state, made through the repositories as workers would make them, with plausible figures."""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import text

from penstock.db import Database, Transaction, lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Model, NewArtifact, Run, Step, TrialSummary
from penstock.services.run_summary import RunSummary
from penstock.services.steps.graph import run_steps, trial_steps
from penstock.services.store import ContentStore

LEASE_SECONDS = 30.0
OPTIONS = {
    "platform": "u55c", "trials": 24, "quantize": "w8a8", "seed": 7, "objectives": ["latency", "resources"],
}  # fmt: skip

_MANY_STEPS = """
    INSERT INTO penstock.steps (id, run_id, kind, key, queue, state, payload, may_fail)
    VALUES (:id, :run, 'trial', :key, 'explore', 'succeeded', jsonb_build_object('number', CAST(:number AS int)), true)
"""
_MANY_TRIALS = """
    INSERT INTO penstock.trials (step_id, run_id, number, state, params, figures, evidence, seconds)
    VALUES (:id, :run, :number, 'complete', jsonb_build_object('lanes', CAST(:number AS int)),
        jsonb_build_object('latency_cycles', CAST(:x AS float8), 'latency_us', CAST(:x AS float8) / 300,
                           'resource_share', CAST(:y AS float8)), 'modelled', 0.1)
"""


@dataclass
class Seeder:
    """Plays the workers' part. Each call is a transaction of its own, as in life."""

    database: Database
    store: ContentStore
    worker: str = "lab-node-3:4711:1"

    def model(self, name: str = "digits_mlp", kind: str = "python") -> Model:
        source = {"python": f"{name}.py:model", "onnx": f"{name}.onnx"}.get(kind, f"zoo:{name}")
        stored = self.store.put_bytes(f"# {name}\n".encode()) if kind in ("python", "onnx") else None
        with self.database.begin() as tx:
            return tx.models.create(
                name=name,
                kind=kind,
                source=source,
                sha256=stored.sha256 if stored else None,
                size=stored.size if stored else None,
            )

    def kernel(self, source: str, *, file: str = "chain.cpp", top: str = "chain") -> Model:
        """A kernel in C++ of one file."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / file).write_text(source)
            stored = self.store.put_tree(Path(folder))
        with self.database.begin() as tx:
            return tx.models.create(
                name=f"{Path(file).stem}.{top}", kind="kernel", source=f"{file}:{top}", sha256=stored.sha256,
                size=stored.size, details={"file": file, "function": top, "files": [file]},
            )  # fmt: skip

    def run(self, model: Model | None = None, name: str = "", **options: Any) -> Run:
        known = model or self.model()
        with self.database.begin() as tx:
            return lifecycle.submit(
                tx,
                model_id=known.id,
                name=name or known.name,
                steps=run_steps(known, options),
                options=OPTIONS | options,
                owner=None,
            )

    def claim(self, run: Run, key: str) -> Step:
        with self.database.begin() as tx:
            known = tx.steps.by_key(run.id, key)
            assert known is not None, f"{run.id} has a step {key}"
            step = lifecycle.claim(tx, known.id, worker=self.worker, lease_seconds=LEASE_SECONDS)
            assert step is not None, f"{key} can be claimed"
            return step

    def finish(self, run: Run, key: str, outcome: StepOutcome | None = None) -> None:
        step = self.claim(run, key)
        with self.database.begin() as tx:
            lifecycle.finish(tx, step, outcome or StepOutcome(result={}))

    def fail(self, run: Run, key: str, **error: str) -> None:
        step = self.claim(run, key)
        with self.database.begin() as tx:
            lifecycle.fail(tx, step, error)

    def lose(self, run: Run, key: str) -> None:
        """The worker of the step vanishes; the step goes back to the queue."""
        step = self.claim(run, key)
        with self.database.begin() as tx:
            lifecycle.retry(tx, step, {"code": "worker-lost", "what": f"worker {self.worker} went silent"})

    def explore(self, run: Run, trials: int) -> None:
        """Finishes import and explore, whose trials are then ready to be claimed."""
        self.finish(run, "import", StepOutcome(result={}, artifacts=[self.file("program.tar", b"linalg" * 900)]))
        found = RunSummary(modelled=3, trials_planned=trials, warm_start=None).written()  # as the step itself writes it
        steps = trial_steps(trials, run.options)
        self.finish(run, "explore", StepOutcome(result={}, run_summary=found, new_steps=steps))

    def trial(self, run: Run, number: int) -> None:
        summary = summary_of(number)
        self.finish(run, f"trial/{number:04}", StepOutcome(result={}, trial=summary))

    def many_trials(self, run: Run, count: int) -> dict[int, tuple[float, float]]:
        """Ended trials by the thousand, each with its latency in cycles and its share; no two are equal."""
        chance = random.Random(count)
        figures = {number: (100.0 + chance.random() * 900, chance.random()) for number in range(count)}
        made = [
            {"id": new_id("stp"), "run": run.id, "key": f"trial/{number:04}", "number": number, "x": x, "y": y}
            for number, (x, y) in figures.items()
        ]
        with self.database.begin() as tx:
            tx.connection.execute(text(_MANY_STEPS), made)
            tx.connection.execute(text(_MANY_TRIALS), made)
        return figures

    def complete(
        self,
        run: Run,
        chosen: int,
        report: bytes = b'{"schema_version": 1, "name": "digits_mlp"}\n',
        packaged: Mapping[str, Any] | None = None,
    ) -> None:
        """Finishes what comes after the trials; `packaged` is what packing adds to the run's summary."""
        figures = summary_of(chosen).figures
        found = {
            "chosen_trial": chosen, "on_front": 9, **figures, "evidence": "simulated", "latency_us": 7.5,
            "latency_cycles": 2250, "interval_cycles": 1400, "modelled_latency_cycles": 2100,
            "fifo_bits": 3840, "unsized_fifo_bits": 12800, "why": ["fc1 sets the pace."],
            "rung_errors": [
                {
                    "family": "vitis-ultrascale-plus", "weaker": "modelled", "stronger": "simulated", "designs": 8,
                    "median_ratio": 1.0, "typical": 0.0, "worst": 0.0,
                }
            ],
        }  # fmt: skip
        drawing = b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30"/></svg>'
        pictures = [self.file(name, drawing, "image/svg+xml") for name in ("memories.svg", "dies.svg", "why.svg")]
        self.finish(run, "select", StepOutcome(result={}, run_summary=found, artifacts=pictures))
        accuracy = {"float_accuracy": 0.9722, "accelerator_accuracy": 0.9694}
        self.finish(run, "verify", StepOutcome(result={}, run_summary=accuracy))
        files = [
            self.file("digits_mlp.penstock.zip", b"PK\x03\x04" + bytes(range(256)) * 300, "application/zip"),
            self.file("report.json", report, "application/json"),
            self.file("report.html", b"<!doctype html><title>Report</title><p>Report", "text/html; charset=utf-8"),
        ]
        self.finish(run, "package", StepOutcome(result={}, run_summary=dict(packaged or {}), artifacts=files))

    def file(self, name: str, content: bytes, media_type: str = "application/x-tar") -> NewArtifact:
        stored = self.store.put_bytes(content)
        return NewArtifact(name=name, sha256=stored.sha256, size=stored.size, media_type=media_type)

    def replace_file(self, run: Run, ending: str, content: bytes) -> None:
        """Gives a file of the run another content."""
        stored = self.store.put_bytes(content)
        change = "UPDATE penstock.artifacts SET sha256 = :sha256, size = :size WHERE run_id = :run AND name LIKE :name"
        values = {"sha256": stored.sha256, "size": stored.size, "run": run.id, "name": f"%{ending}"}
        with self.database.begin() as tx:
            tx.connection.execute(text(change), values)

    def finished_run(self, trials: int = 24, report: Mapping[str, Any] | None = None, **options: Any) -> Run:
        run = self.run(trials=trials, **options)
        self.explore(run, trials)
        numbers = range(trials)
        for number in numbers:
            self.trial(run, number)
        fitting = [number for number in numbers if summary_of(number).state == "complete"]
        chosen = min(fitting, key=lambda number: summary_of(number).figures["latency_us"])
        if report is None:
            self.complete(run, chosen)
        else:
            self.complete(run, chosen, json.dumps(report).encode())
        return self.reload(run)

    def reload(self, run: Run) -> Run:
        with self.database.begin() as tx:
            found = tx.runs.get(run.id)
        assert found is not None, f"{run.id} exists"
        return found

    def cancel(self, run: Run) -> None:
        with self.database.begin() as tx:
            lifecycle.cancel_run(tx, run.id)


def summary_of(number: int) -> TrialSummary:
    """The outcome of a trial, from its number alone: more lanes are faster and take more of the device."""
    chance = random.Random(number)
    lanes = [2 ** chance.randint(0, 5) for _ in range(3)]
    cycles = round(sum(size / lane for size, lane in zip((4096, 2048, 640), lanes, strict=True)) + 90)
    share = round(0.03 + 0.006 * sum(lanes) ** 1.35 * chance.uniform(0.85, 1.2), 4)
    figures = {
        "latency_cycles": cycles, "latency_us": cycles / 300.0, "interval_cycles": round(cycles * 0.8),
        "interval_us": round(cycles * 0.8) / 300.0, "energy_uj": round(cycles * share * 0.01, 3),
        "resource_share": share, "lut_share": share, "dsp_share": round(share * 0.6, 4),
    }  # fmt: skip
    return TrialSummary(
        number=number,
        state="complete" if share <= 1.0 else "infeasible",
        params={
            "fc1.unroll": lanes[0], "fc2.unroll": lanes[1], "fc3.unroll": lanes[2],
            "fc1.tile": [16, 2 ** chance.randint(2, 5)], "clock_mhz": 300,
        },
        figures=figures,
        evidence="modelled",
        design=None,
        seconds=round(0.4 + math.log2(sum(lanes)) / 9, 2),
    )  # fmt: skip


def newest_artifact(tx: Transaction, run: Run, name: str) -> str:
    """The id of the run's artifact of that name."""
    found: Sequence[Any] = tx.artifacts.list(run.id).items
    return next(artifact.id for artifact in found if artifact.name == name)
