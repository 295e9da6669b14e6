"""Kept profiles: claims that lapse, citations, eviction of what nobody cites, counts; and pairs of rungs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from penstock.db import Database
from penstock.db.schema.records import Citations, NewProfile, RungPair
from tests.db.test_repositories import echo, make_run

PROFILE = NewProfile(key="k", platform="u55c", tool="t", evidence="csynth", figures={"ii": 1}, seconds=2.0, label="x")


def keep(database: Database, *keys: str) -> None:
    """Used one after the other, the last one just now."""
    for key in keys:
        with database.begin() as tx:
            tx.profiles.put([replace(PROFILE, key=key)])


def kept(database: Database) -> set[str]:
    with database.begin() as tx:
        return set(tx.connection.execute(text("SELECT key FROM penstock.profiles")).scalars())


def test_a_profile_is_kept_once(database: Database) -> None:
    keep(database, "k", "k")
    with database.begin() as tx:
        [found] = tx.profiles.use(["k", "other"])
        assert (found.figures, found.uses, found.label) == ({"ii": 1}, 1, "x")
        assert tx.profiles.use(["other"]) == ()
        [kind] = tx.profiles.kinds()
        assert (kind.tool, kind.profiles, kind.uses, kind.seconds) == ("t", 1, 1, 2.0)


def test_a_claim_is_one_holder_s_until_it_lapses_or_is_given_up(database: Database) -> None:
    with database.begin() as tx:
        assert tx.profiles.claim(["a", "b"], "one", "", 60) == ("a", "b")
        assert tx.profiles.claim(["a", "b", "c"], "two", "", 60) == ("c",)
        assert tx.profiles.claim(["a", "b", "c"], "one", "", 60) == ("a", "b"), "the answer may have been lost"
        assert tx.profiles.claimed() == 3
        tx.profiles.release("two")
    with database.begin() as tx:
        tx.connection.execute(text("UPDATE penstock.profile_claims SET lease_until = now() - interval '1s'"))
        assert tx.profiles.claimed() == 0
    with database.begin() as tx:
        tx.profiles.renew("one", 60)
        assert tx.profiles.claim(["a"], "two", "", 60) == (), "renewed in time"
        tx.connection.execute(text("UPDATE penstock.profile_claims SET lease_until = now() - interval '1s'"))
        assert tx.profiles.claim(["a"], "two", "", 60) == ("a",)
        tx.profiles.renew("one", 60)
        tx.profiles.release("one")
        assert tx.profiles.claim(["a"], "three", "", 60) == (), "the old holder has lost it"


def test_eviction_takes_the_least_recently_used_and_never_what_a_run_cites(database: Database) -> None:
    keep(database, "a", "b", "c", "d", "e")
    run = make_run(database, echo("a"))
    with database.begin() as tx:
        tx.profiles.cite(run.id, {"b": "miss"})
    with database.begin() as tx:
        tx.profiles.use(["a"])
    with database.begin() as tx:
        assert tx.profiles.evict(keep=10, unused_days=30) == 0
        assert tx.profiles.evict(keep=2, unused_days=30) == 2
    assert kept(database) == {"a", "e", "b"}
    with database.begin() as tx:
        tx.connection.execute(text("UPDATE penstock.profiles SET used_at = now() - interval '40 days'"))
    keep(database, "e")
    with database.begin() as tx:
        tx.profiles.use(["e"])
    with database.begin() as tx:
        assert tx.profiles.evict(keep=10, unused_days=30) == 1
        assert tx.profiles.cited(run.id) == {"miss": Citations("miss", 1, 2.0)}
    assert kept(database) == {"e", "b"}
    with database.begin() as tx:
        tx.connection.execute(text("DELETE FROM penstock.runs WHERE id = :id"), {"id": run.id})
        assert tx.profiles.evict(keep=10, unused_days=30) == 1, "its run was deleted"
        assert tx.profiles.counts()["evicted"] == 4


def test_what_was_used_at_once_is_not_evicted_at_once(database: Database) -> None:
    keep(database, "a", "b", "c")
    with database.begin() as tx:
        tx.profiles.use(["a", "b", "c"])
    with database.begin() as tx:
        assert tx.profiles.evict(keep=2, unused_days=30) == 1
    assert len(kept(database)) == 2


def test_what_is_being_used_is_passed_over(database: Database) -> None:
    keep(database, "a", "b")
    run = make_run(database, echo("a"))
    with database.begin() as user:
        user.profiles.use(["a"])
        with database.begin() as sweeper:
            assert sweeper.profiles.evict(keep=0, unused_days=30) == 1
        user.profiles.cite(run.id, {"a": "hit"})
    assert kept(database) == {"a"}
    with database.begin() as sweeper:
        assert sweeper.profiles.evict(keep=0, unused_days=0) == 0, "it is cited now"


def test_claims_of_the_dead_are_forgotten(database: Database) -> None:
    with database.begin() as tx:
        tx.profiles.claim(["a", "b"], "one", "", 60)
        tx.connection.execute(
            text("UPDATE penstock.profile_claims SET lease_until = now() - interval '2 h' WHERE key = 'a'")
        )
        tx.profiles.evict(keep=1, unused_days=1)
        assert tx.connection.execute(text("SELECT key FROM penstock.profile_claims")).scalars().all() == ["b"]


def test_counts_add_up(database: Database) -> None:
    with database.begin() as tx:
        tx.profiles.count({"hits": 2, "seconds_saved": 1.5})
        tx.profiles.count({"hits": 1, "misses": 0})
        assert tx.profiles.counts() == {
            "hits": 3, "misses": 0, "waits": 0, "failures": 0, "seconds_saved": 1.5, "evicted": 0,
        }  # fmt: skip


def test_pairs_of_rungs_are_replaced_and_outlive_their_run(database: Database) -> None:
    run = make_run(database, echo("a"))
    pair = RungPair("m", "d", "modelled", "simulated", "ecp5", "contraction", 100.0, 90.0)
    with database.begin() as tx:
        tx.rung_pairs.add(run.id, [pair, replace(pair, design="e")])
    with database.begin() as tx:
        tx.rung_pairs.add(run.id, [replace(pair, stronger_cycles=95.0)])
        assert {p.design: p.stronger_cycles for p in tx.rung_pairs.of_family("ecp5")} == {"d": 95.0, "e": 90.0}
        [found] = tx.rung_pairs.differences(run.id)
        assert (found.family, found.weaker, found.stronger, found.designs) == ("ecp5", "modelled", "simulated", 2)
        assert (found.median_ratio, found.worst) == pytest.approx((0.925, 1 / 0.9 - 1))
        assert found.typical == pytest.approx((1 / 0.9 + 1 / 0.95) / 2 - 1)
        assert tx.rung_pairs.of_family("u55c") == ()
        tx.connection.execute(text("DELETE FROM penstock.runs WHERE id = :id"), {"id": run.id})
        assert [p.design for p in tx.rung_pairs.of_family("ecp5")] == ["e", "d"]
        assert tx.rung_pairs.differences(run.id) == ()
        assert [one.designs for one in tx.rung_pairs.differences()] == [2]


def test_only_pairs_that_are_read_are_kept(database: Database) -> None:
    pair = RungPair("m", "d", "modelled", "simulated", "ecp5", "II = 1", 100.0, 90.0)
    with database.begin() as tx:
        tx.rung_pairs.add(None, [replace(pair, family="u55c", design="other")])
    for design in "abcd":
        with database.begin() as tx:
            tx.rung_pairs.add(None, [replace(pair, design=design)], keep=3)
    with database.begin() as tx:
        assert [p.design for p in tx.rung_pairs.of_family("ecp5")] == ["b", "c", "d"]
    with database.begin() as tx:  # looked at again, the oldest becomes the newest
        tx.rung_pairs.add(None, [replace(pair, design="b"), replace(pair, design="b", stronger="csynth")], keep=3)
        kept = {(p.design, p.stronger) for p in tx.rung_pairs.of_family("ecp5")}
        assert kept == {("b", "simulated"), ("b", "csynth"), ("d", "simulated")}
        assert len(tx.rung_pairs.of_family("u55c")) == 1, "another family's are left alone"
