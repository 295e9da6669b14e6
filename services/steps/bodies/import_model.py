"""Import: the user's model becomes a program, in a process that is thrown away.

That process runs foreign code, so it gets no secrets and, where the machine can do it, neither network nor
any file of the service. What comes back is data: text, JSON and plain arrays, read without executing anything.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path, PurePosixPath

from penstock import IMPORT_ROOT
from penstock.compiler.errors import PenstockError
from penstock.db.schema.records import Json
from penstock.profiling.tool_runner import ToolCommand, ToolOutcome, clean_environment
from penstock.services.step_kinds import IMPORT
from penstock.services.steps.context import StepContext
from penstock.services.steps.isolation import isolated
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.store import TREE_MEDIA_TYPE

PROGRAM = "program"
_TIMEOUT_SECONDS = 900.0
_EXIT_REFUSED, _EXIT_INTERNAL = 1, 3


def _reuse_key(context: StepContext) -> Json:
    model = context.model
    return {"kind": model.kind, "source": model.source, "sha256": model.sha256, "details": dict(model.details)}


@step_kind(IMPORT, reuse_key=_reuse_key)
def import_model(context: StepContext) -> StepResult:
    model = context.model
    if model.kind == "python" and not context.settings.allow_python_models:
        raise PenstockError(
            code="python-models-off", what="this service does not take Python models", where=model.source,
            limit="they run the code of whoever submits them",
            hint="export to ONNX, or ask the administrator to set PENSTOCK_ALLOW_PYTHON_MODELS=1",
        )  # fmt: skip
    out = context.folder / "program"
    reference = _reference(context)
    context.progress(None, "importing the model")
    arguments = [sys.executable, "-m", "penstock.compiler.frontend", reference, str(out)]
    untrusted = model.kind not in ("python", "zoo")
    command = ToolCommand(
        argv=tuple(isolated(arguments, context.settings, context.folder, required=untrusted)),
        folder=context.folder,
        logs=context.folder / "logs",
        env=clean_environment(PYTHONPATH=str(IMPORT_ROOT), HOME=str(context.folder), PYTHONHASHSEED="0"),
        timeout=_TIMEOUT_SECONDS,
    )
    result = context.tools.run(command)
    refusal = _refusal(out)
    if result.outcome is ToolOutcome.EXIT and refusal is not None:
        raise refusal
    if not result.ok:
        raise result.error("the import of the model", "run `penstock compile` on it locally to see more")
    return StepResult({"seconds": round(result.seconds, 3)}, {PROGRAM: Output(out, TREE_MEDIA_TYPE)})


def _reference(context: StepContext) -> str:
    """The model as the front end names it; a file is laid into this step's own folder."""
    model = context.model
    if model.sha256 is None:
        return model.source
    # only the last part of the user's path, so that nothing is written elsewhere
    name = PurePosixPath(str(model.details.get("file") or "model")).name
    folder = context.folder / "source"
    folder.mkdir()
    path = folder / name
    path.write_bytes(context.store.read_bytes(model.sha256))
    function = model.details.get("function")
    return f"{path}:{function}" if function else str(path)


def _refusal(out: Path) -> PenstockError | None:
    """What the front end says of the model, with our own paths taken out."""
    path = out / "error.json"
    if not path.is_file():
        return None
    fields = json.loads(path.read_text())
    source = str(out.parent / "source") + "/"
    known = {name: str(fields.get(name, "")).replace(source, "") for name in ("what", "where", "limit", "hint")}
    return PenstockError(code=str(fields.get("code", "import-failed")), **known)
