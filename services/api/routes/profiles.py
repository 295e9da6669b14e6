"""/v1/profiles, /v1/rungs, /v1/runs/{id}/explanation: what was measured, how far figures differ, why a design."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter

from penstock.db import Transaction
from penstock.db.schema.records import Artifact, Run
from penstock.services.api.answers.evidence import (
    Explanation,
    ProfileStatistics,
    RungDifferences,
    differences_out,
    profiles_out,
)
from penstock.services.api.answers.params import PROBLEMS, RunId
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.jobs.runs import find_run
from penstock.services.store import MissingContentError

router = APIRouter(prefix="/v1", tags=["results"], responses=PROBLEMS)

EXPLORATION = "exploration.json"


@router.get("/profiles", summary="The measurements that all runs share")
def profile_statistics(context: Ctx, caller: Caller) -> ProfileStatistics:
    """How often a measurement was asked for, made, spared, and what is kept."""
    with context.database.begin() as tx:
        return profiles_out(tx)


@router.get("/rungs", summary="How far the rungs of evidence differ")
def rung_differences(context: Ctx, caller: Caller) -> RungDifferences:
    """Of all designs on record, by family of platforms: each rung against the next that measured the same design."""
    with context.database.begin() as tx:
        return RungDifferences(items=differences_out(tx))


@router.get("/runs/{run_id}/explanation", summary="Why a run chose its design")
def explain_run(run_id: RunId, context: Ctx, caller: Caller) -> Explanation:
    """What sets the design's pace, what binds it, what one step of each parameter changes, how sure the figures are."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        found = _exploration(tx, run)
        differences = differences_out(tx, run.id)
    learned = _read(context, found)
    return Explanation(
        run=run.id,
        why=learned.get("why"),
        rung_errors=learned.get("rung_errors") or [],
        correction=learned.get("correction") or "",
        profiles=learned.get("profiles"),
        differences=differences,
    )


def _exploration(tx: Transaction, run: Run) -> Artifact | None:
    """The newest: a run that was extended has chosen again."""
    files = tx.artifacts.list(run.id, limit=500).items
    return next((file for file in files if file.name == EXPLORATION), None)


def _read(context: Context, found: Artifact | None) -> dict[str, Any]:
    """What the artifact says; nothing where its content is not kept any more."""
    if found is None:
        return {}
    try:
        document: dict[str, Any] = json.loads(context.store.read_bytes(found.sha256))
    except MissingContentError:
        return {}
    return document
