"""The design of a run, from its report and its package: dataflow, simulation, area, and the code of one kernel."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from penstock.db.schema.ids import is_id
from penstock.db.schema.records import Artifact
from penstock.services.api.answers.documents import run_detail
from penstock.services.api.answers.params import RunId
from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.pages.kernel import kernel_html, kernel_run
from penstock.services.api.pages.reports import newest, read_report
from penstock.services.api.pages.run import run_document
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.jobs.runs import find_run
from penstock.services.run_options import PlainText
from penstock.services.store import MissingContentError
from penstock.web.render import render_design

router = APIRouter(include_in_schema=False)

REPORT, PACKAGE, MESH = "report.json", ".penstock.zip", "mesh.json"
MOST_CODE = 40_000
"""Characters of one task's code that a page shows; the package has all of it."""
MOST_SOURCE_BYTES = 64 << 20
_HLS, _IR, _CORE = "hls/penstock_top.cpp", "ir/3-stream.mlir", "rtl/penstock_core.sv"


@router.get("/runs/{run_id}/design")
def design_page(
    run_id: RunId,
    framed: Framed,
    context: Ctx,
    kernel: Annotated[PlainText, Query(max_length=300)] = "",
    area: Annotated[str, Query(max_length=10)] = "",
    what_if: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """The chosen design; `kernel` opens one layer of it, `area` says which resource the map of areas is of, `what_if`
    shows what changes of it would do."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        document = run_document(run_detail(tx, run))
        asked = tx.runs.get(what_if) if is_id(what_if, "run") else None
        question = run_document(run_detail(tx, asked)) if asked is not None else None
        report_file, package, mesh_file = (newest(tx, run, ending) for ending in (REPORT, PACKAGE, MESH))
        own = kernel_run(tx, run, document)
        other = kernel_run(tx, asked, question) if asked is not None and question is not None else None
    report, mesh, missing = None, None, ""
    try:
        if own is not None and (html := kernel_html(framed, context, own, other)):
            return page(html)
        if mesh_file is not None:
            mesh = read_report(context.store.path(mesh_file.sha256), mesh_file.sha256)
        if report_file is not None:
            report = read_report(context.store.path(report_file.sha256), report_file.sha256)
    except MissingContentError:
        missing = "Its report is no longer in the store; the run can be started again."
    code: Mapping[str, str] = {}
    if report is not None and kernel and package is not None:
        tasks = [task["nest"] for task in report["timing"]["kernels"] if task["kernel"] == kernel]
        code = _code_of(context, package, tasks)
    return page(
        render_design(
            framed,
            document,
            report,
            kernel=kernel,
            code=code,
            resource=area,
            missing=missing,
            question=question,
            mesh=mesh,
        )
    )


def _code_of(context: Context, package: Artifact, tasks: Sequence[str]) -> dict[str, str]:
    """What the package holds of some tasks, language by language. A package that is gone or odd shows none."""
    found: dict[str, str] = {}
    try:
        with zipfile.ZipFile(context.store.path(package.sha256)) as archive:
            names = set(archive.namelist())
            hls, ir = _text_of(archive, _HLS, names), _text_of(archive, _IR, names)
            core = _text_of(archive, _CORE, names)
            modules = dict.fromkeys(_module_of(core, task) for task in tasks)  # equal tasks share one
            parts = {
                "HLS C++": [_function(hls, task) for task in tasks],
                "IR": [_task(ir, task) for task in tasks],
                "SystemVerilog": [_text_of(archive, f"rtl/{name}.sv", names) for name in modules],
            }
    except (MissingContentError, zipfile.BadZipFile, OSError):
        return {}
    for language, texts in parts.items():
        whole = "\n\n".join(text for text in texts if text)
        if whole:
            found[language] = whole[:MOST_CODE] + ("\n…" if len(whole) > MOST_CODE else "")
    return found


def _text_of(archive: zipfile.ZipFile, name: str, names: set[str]) -> str:
    if name not in names or archive.getinfo(name).file_size > MOST_SOURCE_BYTES:
        return ""
    return archive.read(name).decode("utf-8", "replace")


def _module_of(core: str, task: str) -> str:
    """The module that a task is an instance of, as the core's text says."""
    found = re.search(rf"^\s*(\w+) {re.escape(task)} \($", core, re.MULTILINE)
    return found[1] if found else ""


def _function(source: str, task: str) -> str:
    """A task's function with the comment above it."""
    at = source.find(f"\nstatic void {task}(")
    if at < 0:
        return ""
    begin = source.rfind("\n\n", 0, at) + 2
    end = source.find("\n}\n", at)
    return source[begin : end + 3 if end >= 0 else None]


def _task(ir: str, task: str) -> str:
    """A task's operation, which ends where its own indentation comes back."""
    at = ir.find(f'    stream.task "{task}" ')
    end = ir.find("\n    }\n", at)
    return ir[at : end + 7] if 0 <= at < end else ""
