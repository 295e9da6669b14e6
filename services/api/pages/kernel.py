"""The design of a run of a C++ kernel: its source before and after, and another source that was asked about."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass

from penstock.db import Transaction
from penstock.db.schema.records import Artifact, Model, Run
from penstock.services.api.pages.frame import Framed
from penstock.services.api.pages.reports import newest, read_report
from penstock.services.api.plumbing.context import Context
from penstock.services.step_kinds import KERNEL
from penstock.services.store import MissingContentError
from penstock.web.changed_source import ChangedSource, source_form, view_changed_source
from penstock.web.render import render_kernel_run
from penstock.web.text import Document

MOST_SOURCE = 200_000
"""Characters of a source that can be changed on its page."""
_SOURCES, _ANALYSIS = "kernel.json", "analysis.json"
"""Its source before and after, and what is known before another one is chosen."""


@dataclass(frozen=True)
class KernelRun:
    """A run of a kernel with what it has left so far."""

    document: Document
    model: Model
    record: Artifact | None


def kernel_run(tx: Transaction, run: Run, document: Document) -> KernelRun | None:
    """None where the run is of something else."""
    model = tx.models.get(run.model_id)
    if model is None or model.kind != KERNEL:
        return None
    return KernelRun(document, model, newest(tx, run, _SOURCES) or newest(tx, run, _ANALYSIS))


def kernel_html(framed: Framed, context: Context, run: KernelRun, asked: KernelRun | None) -> str | None:
    """None while nothing of the kernel is known."""
    record = _record(context, run)
    if record is None:
        return None
    main, top = str(run.model.details["file"]), str(run.model.details["function"])
    text = record.get("source") or _sent(context, run)
    other = _sent(context, asked) if asked else ""
    found = _record(context, asked) if asked else None
    view = None if asked is None else _changed(run, asked, record, found, (text, other))
    locked = ""
    if len(run.model.details["files"]) > 1:
        locked = "It includes headers of its own: change it where they lie, send all of it as a new run, and compare."
    elif not 0 < len(text) < MOST_SOURCE:
        locked = "Its source is too long for a form, or no longer in the store: send a changed one as a new run."
    form = None if locked else source_form(run.document, top, main, other or text)
    return render_kernel_run(framed, run.document, record, form=form, locked=locked, asked=view)


def _changed(
    run: KernelRun, asked: KernelRun, record: Document, found: Document | None, texts: tuple[str, str]
) -> ChangedSource:
    base = record.get("after") or record["before"]
    return view_changed_source(run.document, asked.document, base, found["before"] if found else None, texts)


def _record(context: Context, run: KernelRun) -> Document | None:
    if run.record is None:
        return None
    found = read_report(context.store.path(run.record.sha256), run.record.sha256)
    return found if run.record.name.endswith(_SOURCES) else {"before": found}


def _sent(context: Context, run: KernelRun) -> str:
    """Its source as it was sent; nothing if that cannot be read any more."""
    try:
        content = context.store.read_from_tree(str(run.model.sha256), str(run.model.details["file"]))
    except (MissingContentError, KeyError, tarfile.TarError):
        return ""
    return content[: 4 * MOST_SOURCE].decode("utf-8", "replace")
