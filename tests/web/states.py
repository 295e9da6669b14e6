"""Runs in the states that people worry about, made as workers and users would make them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import text

from penstock.db import lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import Run
from penstock.services.steps.graph import measure_steps
from tests.api.seeding import Seeder

_SILENT = "UPDATE penstock.steps SET lease_until = now() - interval '40 s' WHERE run_id = :run AND state = 'running'"
_HELD = "UPDATE penstock.steps SET lease_until = now() + interval '1 hour' WHERE run_id = :run AND state = 'running'"
_LONG = "UPDATE penstock.steps SET queued_at = now() - interval '3 minutes' WHERE run_id = :run AND state = 'queued'"
_OLD = "UPDATE penstock.runs SET created_at = now() - interval '3 minutes' WHERE id = :run"


def seed_states(seeder: Seeder) -> Mapping[str, Run]:
    """Behind others, waiting for a licence, paused, with a lost worker, failed."""
    behind = seeder.run(name="behind others")
    holds, waits = (_before_tools(seeder, name) for name in ("holds the licence", "waits for a licence"))
    seeder.claim(holds, "measure/0000")
    paused = seeder.run(name="paused", trials=8)
    seeder.explore(paused, 8)
    seeder.trial(paused, 0)
    lost = seeder.run(name="its worker is lost")
    seeder.claim(lost, "import")
    failed = seeder.run(name="lstm")
    seeder.lose(failed, "import")
    seeder.fail(failed, "import", code="x", what="no branches on data", where="lstm.py:41", limit="static graphs",
                hint="use torch.where", log_tail="UserError: dynamic " * 20)  # fmt: skip
    with seeder.database.begin() as tx:
        lifecycle.pause_run(tx, paused.id)
        tx.connection.execute(text(_HELD), {"run": holds.id})
        tx.connection.execute(text(_SILENT), {"run": lost.id})
        for run in (behind, waits):
            tx.connection.execute(text(_LONG), {"run": run.id})
            tx.connection.execute(text(_OLD), {"run": run.id})
    return {"behind": behind, "licence": waits, "paused": paused, "lost": lost, "failed": failed}


def _before_tools(seeder: Seeder, name: str) -> Run:
    """A run whose two best designs are to be measured by a tool."""
    run = seeder.run(name=name, trials=2, evidence="csynth")
    seeder.explore(run, 2)
    for number in range(2):
        seeder.trial(run, number)
    seeder.finish(run, "shortlist", StepOutcome(result={}, new_steps=measure_steps((0, 1))))
    return run
