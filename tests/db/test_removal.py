"""Deletion, pins and collection: whatever is done in whatever order, no row is ever without its content."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy import text

from penstock.db import Database, lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import NewArtifact, NewStep, Run
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.removal import collect, collect_content, delete_model, delete_run, pin_run
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from penstock.services.worker.sweep import forget_old_words

OLD = 10_000.0


def age(store: ContentStore) -> None:
    """Everything was stored long ago."""
    for path in store.root.glob("??/*"):
        os.utime(path, (0, 0))


def make_run(
    database: Database, store: ContentStore, contents: list[bytes], *, done: bool = True, model: str = ""
) -> Run:
    files = [store.put_bytes(one) for one in contents]
    with database.begin() as tx:
        sent = store.put_bytes(model.encode()) if model else None
        known = tx.models.create(
            name="m",
            kind="onnx",
            source="m.onnx",
            sha256=sent.sha256 if sent else None,
            size=sent.size if sent else None,
        )
        run = lifecycle.submit(
            tx, model_id=known.id, name="r", steps=[NewStep("echo", "a", "explore")], options={}, owner="ada"
        )
        step = lifecycle.claim(tx, tx.steps.list(run.id).items[0].id, worker="w", lease_seconds=60)
        assert step is not None
        if done:
            made = [NewArtifact(f"f{n}", file.sha256, file.size, "x/y") for n, file in enumerate(files)]
            lifecycle.finish(tx, step, StepOutcome({}, made))
    return run


def whole(database: Database, store: ContentStore) -> None:
    with database.begin() as tx:
        rows = tx.connection.execute(
            text("SELECT sha256 FROM artifacts UNION SELECT sha256 FROM models WHERE sha256 IS NOT NULL")
        ).scalars()
        missing = [sha256 for sha256 in rows if not store.exists(sha256)]
    assert missing == [], "a row whose content is gone"


def test_a_run_goes_with_all_that_hangs_on_it(database: Database, tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    run = make_run(database, store, [b"own", b"shared"])
    other = make_run(database, store, [b"shared"], model="weights")
    going = make_run(database, store, [], done=False)
    with database.begin() as tx:
        tx.connection.execute(text("INSERT INTO events (run_id, kind, data) VALUES (:r, 'x', '{}')"), {"r": run.id})
        assert tx.retention.would_free([run.id, other.id]).bytes == len(b"own" + b"shared")
    for refused, code in ((going, "run-going"), (other, "run-pinned")):
        with database.begin() as tx:
            pin_run(tx, other.id, True)
            with pytest.raises(RefusedError) as error:
                delete_run(tx, refused.id)
        assert error.value.code == code
    with database.begin() as tx:
        assert delete_run(tx, run.id).bytes == len(b"own"), "what another run has is not freed"
        with pytest.raises(RefusedError, match="a run of this model"):
            delete_model(tx, other.model_id)
        delete_model(tx, run.model_id)
        left = "SELECT (SELECT count(*) FROM steps WHERE run_id = :r) + (SELECT count(*) FROM events WHERE run_id = :r)"
        assert tx.connection.execute(text(left), {"r": run.id}).scalar() == 0
    assert collect_content(database, store) == 0, "young content is left alone: somebody may be about to refer to it"
    age(store)
    assert collect_content(database, store) == len(b"own")
    whole(database, store)


def test_what_a_dry_run_says_is_what_goes(database: Database, tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    runs = [make_run(database, store, [b"shared", b"%d" % n], model=f"m{n % 2}") for n in range(5)]
    with database.begin() as tx:
        pin_run(tx, runs[0].id, True)
        tx.connection.execute(text("UPDATE runs SET finished_at = now() - interval '40 days'"))
        tx.connection.execute(text("UPDATE models SET created_at = now() - interval '40 days'"))
    said, _ = collect(database, 30.0, dry_run=True)
    done, more = collect(database, 30.0, dry_run=False)
    assert (said, more) == (done, False)
    assert (done.runs, done.models) == (4, 4)
    age(store)
    assert collect_content(database, store) == done.bytes
    whole(database, store)


def test_old_words_are_forgotten_where_that_was_asked_for(database: Database, tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    run, going = make_run(database, store, []), make_run(database, store, [], done=False)
    with database.begin() as tx:
        tx.audit.add(actor="ada", action="x", target="old")
        tx.connection.execute(text("UPDATE runs SET finished_at = now() - interval '9 days' WHERE state = 'succeeded'"))
        tx.connection.execute(text("ALTER TABLE audit DISABLE TRIGGER audit_append_only"))
        tx.connection.execute(text("UPDATE audit SET at = now() - interval '9 days'"))
        tx.audit.add(actor="ada", action="x", target="new")
    settings = Settings(home=tmp_path, database_url=database.url)
    assert forget_old_words(settings, database) == 0, "for ever, unless somebody says otherwise"
    assert forget_old_words(replace(settings, events_days=10.0, audit_days=10.0), database) == 0
    assert forget_old_words(replace(settings, events_days=8.0, audit_days=8.0), database) > 1
    with database.begin() as tx:
        assert [entry.target for entry in tx.audit.list().items] == ["new"]
        assert tx.events.after(run.id) == ()
        assert tx.events.after(going.id) != (), "a run that goes keeps its own"


def test_a_collector_that_dies_takes_nothing_along(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    kept = store.put_bytes(b"kept").sha256

    def dies(_: list[str]) -> set[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.remove([kept], -1.0, dies)
    assert store.read_bytes(kept) == b"kept"


def test_content_that_is_stored_again_meanwhile_stays(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    old = store.put_bytes(b"again").sha256
    age(store)

    def again(_: list[str]) -> set[str]:
        store.put_bytes(b"again")
        return set()

    store.remove([old], OLD, again)
    assert store.read_bytes(old) == b"again"


@examples(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_no_row_is_ever_without_its_content(
    database: Database, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance, store = random.Random(seed), ContentStore(tmp_path_factory.mktemp("store"))
    with database.begin() as tx:
        tx.connection.execute(text("TRUNCATE runs, models CASCADE"))
    runs: list[Run] = []
    pinned: set[str] = set()
    for _ in range(chance.randint(4, 14)):
        match chance.choice(("make", "make", "pin", "unpin", "delete", "gc", "sweep")):
            case "make":
                contents = [b"c%d" % chance.randint(0, 5) for _ in range(chance.randint(0, 3))]
                runs.append(make_run(database, store, contents, model=chance.choice(("", "c1", "c9"))))
            case "pin" | "unpin" as what if runs:
                run = chance.choice(runs)
                (pinned.add if what == "pin" else pinned.discard)(run.id)
                with database.begin() as tx:
                    pin_run(tx, run.id, what == "pin")
            case "delete" if unpinned := [run for run in runs if run.id not in pinned]:
                gone = chance.choice(unpinned)
                runs.remove(gone)
                with database.begin() as tx:
                    delete_run(tx, gone.id)
            case "gc":
                collect(database, 0.0, dry_run=False)
                runs = [run for run in runs if run.id in pinned]
            case "sweep":
                age(store)
                collect_content(database, store)
            case _:
                pass
        whole(database, store)
    with database.begin() as tx:
        assert sorted(run.id for run in tx.runs.list().items) == sorted(run.id for run in runs)
        referred = set(
            tx.connection.execute(text("SELECT sha256 FROM artifacts UNION SELECT sha256 FROM models")).scalars()
        )
    age(store)
    collect_content(database, store)
    assert {path.name for path in store.root.glob("??/*")} == referred - {None}, "what nobody refers to is gone"
