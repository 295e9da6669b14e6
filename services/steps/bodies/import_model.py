"""Import: the user's model becomes a program, behind a fence.

The process that does it runs foreign code, or reads files that somebody made. It sees Python, the compiler and the
model, and may use up so much and no more. What comes back is data, and that is looked at before anything reads it.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.mesh_record import FILE as MESH
from penstock.compiler.reference import CALIBRATION, TASKS
from penstock.compiler.saved_program import FILES, load_checked
from penstock.compiler.tasks.bodies import has_foreign_bodies
from penstock.db.schema.records import Json, Model
from penstock.services.jobs.host_work import check_host_work
from penstock.services.jobs.models import BODIES, PROGRAM_FOLDER, TYPICAL_FOLDER, WEIGHTS_FOLDER
from penstock.services.jobs.sources import options_text
from penstock.services.run_options import RunOptions
from penstock.services.settings import Settings
from penstock.services.step_kinds import IMPORT, KERNEL
from penstock.services.steps.bodies.behind import Behind, limits_of
from penstock.services.steps.bodies.kernel import look_at_kernel, target_of
from penstock.services.steps.context import StepContext
from penstock.services.steps.fence.plan import MODEL
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.store import TREE_MEDIA_TYPE

PROGRAM = "program"
_IMPORTER = "penstock.compiler.frontend"


def _reuse_key(context: StepContext) -> Json:
    model = context.model
    more: dict[str, Any] = {"for": target_of(context)} if model.kind == KERNEL else {}
    if dims := RunOptions.stored(context.options).dims:
        more["dims"] = dims
    return {
        "kind": model.kind, "source": model.source, "sha256": model.sha256, "details": dict(model.details), **more,
    }  # fmt: skip


@step_kind(IMPORT, reuse_key=_reuse_key)
def import_model(context: StepContext) -> StepResult:
    model, settings = context.model, context.settings
    if model.kind == KERNEL:
        return look_at_kernel(context)
    if model.kind == "python" and not settings.allow_python_models:
        raise PenstockError(
            code="python-models-off", what="this service does not take Python models", where=model.source,
            limit="they run the code of whoever submits them",
            hint="export to ONNX, or ask the administrator to start it with `penstock up --allow-python` "
            "(PENSTOCK_ALLOW_PYTHON_MODELS=1)",
        )  # fmt: skip
    limits = limits_of(settings)
    seen, folder = _source(context)
    dims = RunOptions.stored(context.options).dims
    context.progress(None, "importing the model")
    began = time.monotonic()
    behind = Behind("program", ("-m", _IMPORTER, seen, *dims), FILES, folder, "the import of the model", limits)
    out = behind.run(context)
    program = load_checked(out, make_context(), limits.out_bytes)
    check_host_work(program)
    if not _may_bring_bodies(model, settings) and has_foreign_bodies(program.module):
        raise PenstockError(
            code="python-models-off", what="bodies written by hand are not taken from here", where=model.source,
            limit="SystemVerilog and C++ would be built and run with the rights of this service: of a task program, "
            "sent with a token of scope admin to a service that takes Python models",
            hint="leave out inject(...), or send it to a service of your own: `penstock up --allow-python`",
        )  # fmt: skip
    outputs = {PROGRAM: Output(out, TREE_MEDIA_TYPE)}
    if (out / MESH).is_file():  # pages draw it
        outputs[MESH] = Output(Path(shutil.copy(out / MESH, context.folder)), "application/json")
    return StepResult({"seconds": round(time.monotonic() - began, 3)}, outputs)


def _may_bring_bodies(model: Model, settings: Settings) -> bool:
    """Never of a Python model: what such a one leaves may hold anything, and the fence ends with the import."""
    return settings.allow_python_models and model.kind == "tasks" and model.details.get(BODIES) is True


def _source(context: StepContext) -> tuple[str, Path | None]:
    """The model as the front end names it, and the folder that it is laid into if it is a file."""
    model = context.model
    if model.sha256 is None:
        return model.source, None
    folder = context.folder / "source"
    folder.mkdir()
    if any(model.details.get(part) for part in ("weights", "program", CALIBRATION)):
        context.store.extract_tree(model.sha256, folder)
    else:
        (folder / file_name(model)).write_bytes(context.store.read_bytes(model.sha256))
    return _seen(model, str(folder) if context.settings.fence == "off" else MODEL), folder


def file_name(model: Model) -> str:
    """Only the last part of the user's path, so that nothing is written elsewhere."""
    return PurePosixPath(str(model.details.get("file") or "model")).name


def _seen(model: Model, folder: str) -> str:
    """The reference of a model whose files lie there; its weights are an option of it, a program for layers behind."""
    function = model.details.get("function")
    prefix = TASKS if model.kind == "tasks" else ""  # such a file is read, and never executed
    file = f"{prefix}{folder}/{file_name(model)}" + (f":{function}" if function else "")
    whole, mark, layers = str(model.details.get("reference") or file).partition("#")
    options = options_text(model.details.get("options") or {})
    if model.details.get("weights"):
        whole += f"{'&' if '?' in whole else '?'}weights={quote(folder)}/{WEIGHTS_FOLDER}"
    if typical := model.details.get(CALIBRATION):
        whole += f"{'&' if '?' in whole else '?'}{CALIBRATION}={quote(folder)}/{TYPICAL_FOLDER}/{typical}"
        options = options.replace("?", "&", 1) if not model.details.get("program") else options
    if program := model.details.get("program"):
        return f"{whole}#{folder}/{PROGRAM_FOLDER}/{PurePosixPath(str(program)).name}{options}"
    return f"{whole}{mark}{layers}" if mark else f"{whole}{options}"
