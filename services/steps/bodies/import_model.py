"""Import: the user's model becomes a program, behind a fence.

The process that does it runs foreign code, or reads files that somebody made. It sees Python, the compiler and the
model, and may use up so much and no more. What comes back is data, and that is looked at before anything reads it.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import quote

from penstock import IMPORT_ROOT
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.mesh_record import FILE as MESH
from penstock.compiler.reference import TASKS
from penstock.compiler.saved_program import FILES, load_checked
from penstock.compiler.tasks.bodies import has_foreign_bodies
from penstock.db.schema.records import Json, Model
from penstock.profiling.tool_runner import ToolCommand, ToolOutcome, ToolResult, clean_environment
from penstock.services.jobs.host_work import check_host_work
from penstock.services.jobs.models import BODIES, WEIGHTS_FOLDER
from penstock.services.jobs.sources import options_text
from penstock.services.settings import Settings
from penstock.services.step_kinds import IMPORT
from penstock.services.steps.context import StepContext
from penstock.services.steps.fence.launch import NO_FENCE
from penstock.services.steps.fence.plan import GB, MODEL, OUT, FenceLimits, fenced
from penstock.services.steps.fence.probe import fence_advice
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.store import TREE_MEDIA_TYPE

PROGRAM = "program"
_IMPORTER = "penstock.compiler.frontend"
_ERROR = "error.json"
_MOST_ERROR_BYTES = 1 << 16
_MOST_LOG_BYTES = 1 << 20
_CODE = re.compile(r"[a-z][a-z0-9-]{0,60}")


def _reuse_key(context: StepContext) -> Json:
    model = context.model
    return {"kind": model.kind, "source": model.source, "sha256": model.sha256, "details": dict(model.details)}


@step_kind(IMPORT, reuse_key=_reuse_key)
def import_model(context: StepContext) -> StepResult:
    model, settings = context.model, context.settings
    if model.kind == "python" and not settings.allow_python_models:
        raise PenstockError(
            code="python-models-off", what="this service does not take Python models", where=model.source,
            limit="they run the code of whoever submits them",
            hint="export to ONNX, or ask the administrator to start it with `penstock up --allow-python` "
            "(PENSTOCK_ALLOW_PYTHON_MODELS=1)",
        )  # fmt: skip
    limits = limits_of(settings)
    out = context.folder / "program"
    out.mkdir()
    seen, folder = _source(context)
    context.progress(None, "importing the model")
    result = context.tools.run(_command(context, seen, folder, out, limits))
    refusal = _refusal(out, str(folder) + "/" if settings.fence == "off" else MODEL + "/")
    if result.outcome is ToolOutcome.EXIT and refusal is not None:
        raise refusal
    if not result.ok:
        raise _failure(result, limits)
    program = load_checked(out, make_context(), limits.out_bytes)
    check_host_work(program)
    if not _may_bring_bodies(model, settings) and has_foreign_bodies(program.module):
        raise PenstockError(
            code="python-models-off", what="bodies written by hand are not taken from here", where=model.source,
            limit="SystemVerilog and C++ would be built and run with the rights of this service: of a task program, "
            "sent with a token of scope admin to a service that takes Python models",
            hint="leave out inject(...), or send it to a service of your own: `penstock up --allow-python`",
        )  # fmt: skip
    (out / _ERROR).unlink(missing_ok=True)  # a success has none, unless foreign code wrote it
    outputs = {PROGRAM: Output(out, TREE_MEDIA_TYPE)}
    if (out / MESH).is_file():  # pages draw it
        outputs[MESH] = Output(Path(shutil.copy(out / MESH, context.folder)), "application/json")
    return StepResult({"seconds": round(result.seconds, 3)}, outputs)


def _may_bring_bodies(model: Model, settings: Settings) -> bool:
    """Never of a Python model: what such a one leaves may hold anything, and the fence ends with the import."""
    return settings.allow_python_models and model.kind == "tasks" and model.details.get(BODIES) is True


def limits_of(settings: Settings) -> FenceLimits:
    """What one import may use up."""
    memory = int(settings.import_memory_gb * GB)
    return FenceLimits(
        cpu_seconds=settings.import_seconds, memory_bytes=memory, out_bytes=memory // 2, tmp_bytes=memory // 8
    )


def _command(context: StepContext, seen: str, folder: Path | None, out: Path, limits: FenceLimits) -> ToolCommand:
    """The importer behind the fence; without one only where whoever runs the service said so."""
    if context.settings.fence == "off":
        reference = _seen(context.model, str(folder)) if folder else seen
        argv = (sys.executable, "-m", _IMPORTER, reference, str(out))
    else:
        stage = context.folder / "fence"
        stage.mkdir()
        argv = fenced(
            ("-m", _IMPORTER, seen, OUT), stage=stage, out=out, outputs=(_ERROR, *FILES), model=folder,
            hidden=(context.settings.home,), limits=limits,
        )  # fmt: skip
    return ToolCommand(
        argv=argv, folder=context.folder, logs=context.folder / "logs",
        env=clean_environment(PYTHONPATH=str(IMPORT_ROOT), HOME=str(context.folder), PYTHONHASHSEED="0"),
        timeout=limits.seconds, tree_memory_limit=limits.memory_bytes, tree_cpu_limit=limits.cpu_seconds,
        log_limit=_MOST_LOG_BYTES, plain_text=True,
    )  # fmt: skip


def _source(context: StepContext) -> tuple[str, Path | None]:
    """The model as the front end names it, and the folder that it is laid into if it is a file."""
    model = context.model
    if model.sha256 is None:
        return model.source, None
    folder = context.folder / "source"
    folder.mkdir()
    if model.details.get("weights"):
        context.store.extract_tree(model.sha256, folder)
    else:
        (folder / _file_name(model)).write_bytes(context.store.read_bytes(model.sha256))
    return _seen(model, MODEL), folder


def _file_name(model: Model) -> str:
    """Only the last part of the user's path, so that nothing is written elsewhere."""
    return PurePosixPath(str(model.details.get("file") or "model")).name


def _seen(model: Model, folder: str) -> str:
    """The reference of a model whose files lie there; its weights, if it brings some, are an option of it."""
    function = model.details.get("function")
    prefix = TASKS if model.kind == "tasks" else ""  # such a file is read, and never executed
    file = f"{prefix}{folder}/{_file_name(model)}" + (f":{function}" if function else "")
    if not model.details.get("weights"):
        return file + options_text(model.details.get("options") or {})
    whole, mark, layers = str(model.details.get("reference") or file).partition("#")
    return f"{whole}{'&' if '?' in whole else '?'}weights={quote(folder)}/{WEIGHTS_FOLDER}{mark}{layers}"


def _refusal(out: Path, source: str) -> PenstockError | None:
    """What the front end says of the model, with our own paths taken out. Foreign code may have written it."""
    path = out / _ERROR
    if not path.is_file() or path.stat().st_size > _MOST_ERROR_BYTES:
        return None
    try:
        said: Any = json.loads(path.read_text())
    except (ValueError, RecursionError):
        return None
    fields = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    code = fields.get("code")
    known = {name: _readable(fields.get(name, ""), source) for name in ("what", "where", "limit", "hint")}
    return PenstockError(code=code if isinstance(code, str) and _CODE.fullmatch(code) else "import-failed", **known)


def _readable(value: object, source: str) -> str:
    """A text for people: no control characters, and no longer than anybody reads."""
    text = str(value)[:4000].replace(source, "")
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _failure(result: ToolResult, limits: FenceLimits) -> PenstockError:
    """An import that ended without a word of the front end's, as the limit that it met."""
    if result.exit_code == NO_FENCE:
        return _no_fence(result.tail.strip()[-500:])
    spent = result.exit_code == 128 + signal.SIGXCPU or result.outcome is ToolOutcome.TIMEOUT
    if spent:
        return PenstockError(
            code="import-time", what=f"the import of the model {result.describe()}",
            limit=f"it may compute for {limits.cpu_seconds} s, and take {limits.seconds:.0f} s in all",
            hint="make the model smaller, or have the administrator raise PENSTOCK_IMPORT_SECONDS",
        )  # fmt: skip
    if result.outcome is ToolOutcome.OUT_OF_MEMORY or result.exit_code == 128 + signal.SIGKILL:
        return PenstockError(
            code="import-memory", what=f"the import of the model {result.describe()}",
            limit=f"it may hold {limits.memory_bytes / GB:g} GB",
            hint="make the model smaller, or have the administrator raise PENSTOCK_IMPORT_MEMORY_GB",
        )  # fmt: skip
    return result.error("the import of the model", "run `penstock compile` on it locally to see more")


def _no_fence(problem: str) -> PenstockError:
    return PenstockError(
        code="no-fence", what="this machine cannot fence in the import of a model, so none is imported",
        limit=problem, hint=fence_advice(),
    )  # fmt: skip
