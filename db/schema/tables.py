"""The tables as SQLAlchemy sees them. Migrations make them; a test holds both to the same shape."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

SCHEMA = "penstock"
STUDY_SCHEMA = "optuna"
"""Optuna makes its own tables and its own alembic_version: it gets a schema to itself."""

metadata = MetaData(schema=SCHEMA)


def _at(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True))


def _made() -> Column[object]:
    return Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now())


def _to(name: str, target: str, *, nullable: bool = False, cascade: bool = False) -> Column[object]:
    key = ForeignKey(f"{SCHEMA}.{target}.id", ondelete="CASCADE" if cascade else None)
    return Column(name, Text, key, nullable=nullable)


def _json(name: str, *, nullable: bool = False, empty: bool = False) -> Column[object]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable, server_default=text("'{}'") if empty else None)


tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False, unique=True),
    Column("digest", LargeBinary, nullable=False),
    _made(),
    _at("expires_at"),
    _at("revoked_at"),
    _at("last_used_at"),
    Column("owner", Text, nullable=False),
    Column("scope", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _to("token_id", "tokens", cascade=True),
    Column("kind", Text, nullable=False),
    _made(),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Index("sessions_expires", "expires_at"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text, nullable=False),
    Column("token_id", Text),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("status", Integer),
    Column("request_id", Text),
    Column("client", Text),
    Index("audit_actor", "actor", "id"),
    Index("audit_at", "at"),
)

models = Table(
    "models",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("sha256", Text),
    Column("size", BigInteger),
    _json("details", empty=True),
    Column("owner", Text),
    _made(),
    Index("models_content", "sha256"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    _to("model_id", "models"),
    Column("name", Text, nullable=False),
    Column("state", Text, nullable=False),
    _json("options", empty=True),
    _json("summary", empty=True),
    _json("error", nullable=True),
    Column("owner", Text),
    _made(),
    _at("started_at"),
    _at("finished_at"),
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("used", Double, nullable=False, server_default=text("0")),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("notes", Text, nullable=False, server_default=text("''")),
    Index("runs_tags", "tags", postgresql_using="gin"),
    Index("runs_model", "model_id"),
    Index("runs_state", "state", "id"),
    Index("runs_owner", "owner", "id"),
    Index("runs_finished", "finished_at", postgresql_where=text("NOT pinned")),
)

steps = Table(
    "steps",
    metadata,
    Column("id", Text, primary_key=True),
    _to("run_id", "runs", cascade=True),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("state", Text, nullable=False),
    _json("payload", empty=True),
    Column("may_fail", Boolean, nullable=False, server_default=text("false")),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("max_attempts", Integer, nullable=False, server_default=text("3")),
    Column("fence", BigInteger, nullable=False, server_default=text("0")),
    Column("owner", Text),
    _at("lease_until"),
    Column("cancel_requested", Boolean, nullable=False, server_default=text("false")),
    Column("input_hash", Text),
    Column("reused_from", Text),
    Column("progress", Double),
    Column("progress_text", Text),
    _json("memo", empty=True),
    _json("result", empty=True),
    _json("error", nullable=True),
    _made(),
    _at("queued_at"),
    _at("started_at"),
    _at("finished_at"),
    UniqueConstraint("run_id", "key"),
    Column("due_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("licence", Text),
    Index("steps_counts", "run_id", "kind", "state"),
    Index("steps_queued", "run_id", "queue", "id", postgresql_where=text("state = 'queued'")),
    Index("steps_next", "run_id", "id", postgresql_where=text("state = 'queued'")),
    Index(
        "steps_undone",
        "run_id",
        "id",
        postgresql_where=text("NOT (state = 'succeeded' OR state = 'failed' AND may_fail)"),
    ),
    Index("steps_leases", "lease_until", postgresql_where=text("state = 'running'")),
    Index("steps_open", "run_id", postgresql_where=text("state IN ('blocked', 'queued', 'running')")),
    Index("steps_reusable", "kind", "input_hash", postgresql_where=text("state = 'succeeded'")),
)

step_logs = Table(
    "step_logs",
    metadata,
    Column("step_id", Text, ForeignKey(f"{SCHEMA}.steps.id", ondelete="CASCADE"), primary_key=True),
    Column("fence", BigInteger, nullable=False),
    Column("tail", Text, nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

views = Table(
    "views",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text),
    Column("name", Text, nullable=False),
    _json("query"),
    _made(),
    Index("views_name", text("coalesce(owner, '')"), "name", unique=True),
)

step_edges = Table(
    "step_edges",
    metadata,
    Column("step_id", Text, primary_key=True),
    Column("needs_id", Text, primary_key=True),
    ForeignKeyConstraint(["step_id"], [f"{SCHEMA}.steps.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["needs_id"], [f"{SCHEMA}.steps.id"], ondelete="CASCADE"),
    Index("step_edges_needs", "needs_id"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("step_id", Text, ForeignKey(f"{SCHEMA}.steps.id", ondelete="CASCADE"), primary_key=True),
    Column("fence", BigInteger, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    _at("finished_at"),
    Column("outcome", Text),
    _json("error", nullable=True),
    Index("attempts_lost", "finished_at", postgresql_where=text("outcome = 'lose'")),
)

shares = Table(
    "shares",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("used", Double, nullable=False, server_default=text("0")),
)

usage = Table(
    "usage",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("month", Date, primary_key=True),
    Column("steps", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("id", Text, primary_key=True),
    _to("run_id", "runs", cascade=True),
    _to("step_id", "steps", cascade=True),
    Column("name", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("media_type", Text, nullable=False),
    _made(),
    UniqueConstraint("step_id", "name"),
    Index("artifacts_run", "run_id", "id"),
    Index("artifacts_content", "sha256"),
)

trials = Table(
    "trials",
    metadata,
    Column("step_id", Text, ForeignKey(f"{SCHEMA}.steps.id", ondelete="CASCADE"), primary_key=True),
    _to("run_id", "runs", cascade=True),
    Column("number", Integer, nullable=False),
    Column("state", Text, nullable=False),
    _json("params"),
    _json("figures"),
    Column("evidence", Text, nullable=False),
    _json("design", nullable=True),
    Column("seconds", Double, nullable=False),
    _made(),
    Column("origin", Text, nullable=False, server_default=text("''")),
    Column("version", Text, nullable=False, server_default=text("''")),
    UniqueConstraint("run_id", "number"),
    Index("trials_made", "created_at"),
)

profiles = Table(
    "profiles",
    metadata,
    Column("key", Text, primary_key=True),
    Column("platform", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    _json("figures"),
    _made(),
    Column("label", Text, nullable=False, server_default=text("''")),
    Column("seconds", Double, nullable=False, server_default=text("0")),
    Column("uses", BigInteger, nullable=False, server_default=text("0")),
    Column("used_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("profiles_used", "used_at"),
)

profile_claims = Table(
    "profile_claims",
    metadata,
    Column("key", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("lease_until", DateTime(timezone=True), nullable=False),
    _made(),
)

profile_citations = Table(
    "profile_citations",
    metadata,
    Column("key", Text, ForeignKey(f"{SCHEMA}.profiles.key"), primary_key=True),
    Column("run_id", Text, ForeignKey(f"{SCHEMA}.runs.id", ondelete="CASCADE"), primary_key=True),
    Column("how", Text, nullable=False),
    _made(),
    Index("profile_citations_run", "run_id"),
)

profile_counts = Table(
    "profile_counts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Double, nullable=False),
)

rung_pairs = Table(
    "rung_pairs",
    metadata,
    Column("model", Text, primary_key=True),
    Column("design", Text, primary_key=True),
    Column("weaker", Text, primary_key=True),
    Column("stronger", Text, primary_key=True),
    Column("family", Text, nullable=False),
    Column("mix", Text, nullable=False),
    Column("weaker_cycles", Double, nullable=False),
    Column("stronger_cycles", Double, nullable=False),
    Column("run_id", Text, ForeignKey(f"{SCHEMA}.runs.id", ondelete="SET NULL")),
    _made(),
    Index("rung_pairs_family", "family", "weaker", "stronger", "created_at"),
    Index("rung_pairs_run", "run_id"),
)

events = Table(
    "events",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=True),
    _to("run_id", "runs", cascade=True),
    Column("kind", Text, nullable=False),
    _json("data"),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text),
    Index("events_run", "run_id", "id"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text),
    Column("everybody", Boolean, nullable=False, server_default=text("false")),
    Column("url", Text, nullable=False),
    Column("kinds", ARRAY(Text), nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("why_disabled", Text, nullable=False, server_default=text("''")),
    Column("generation", Integer, nullable=False, server_default=text("1")),
    _at("rotated_at"),
    _made(),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Text, primary_key=True),
    _to("webhook_id", "webhooks", cascade=True),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'pending'")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("due_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("status", Integer),
    Column("problem", Text, nullable=False, server_default=text("''")),
    _made(),
    _at("finished_at"),
    Index("deliveries_due", "due_at", postgresql_where=text("state = 'pending'")),
    Index("deliveries_webhook", "webhook_id", "id"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_hash", Text, nullable=False),
    Column("status", Integer),
    _json("headers", nullable=True),
    _json("body", nullable=True),
    _made(),
)
