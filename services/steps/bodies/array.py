"""Array: cores for a kernel in several shapes, with a program for each. The kernel's file is read behind the fence.

Nothing of the kernel is executed. What comes out is looked at before pages show it; the hardware goes to whoever asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.triton.blocks import given_value
from penstock.db.schema.records import Json
from penstock.profiling.csim import find_compiler
from penstock.services.run_summary import ArrayFound, RunSummary
from penstock.services.step_kinds import ARRAY
from penstock.services.steps.bodies.behind import Behind, limits_of
from penstock.services.steps.bodies.import_model import file_name
from penstock.services.steps.context import StepContext
from penstock.services.steps.fence.plan import COMPILER, MODEL, PROFILING
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult

RECORD, DESCRIPTION, HARDWARE = "array.json", "array.toml", "array.zip"
_PROGRAM = "penstock.profiling.arrays"
_REQUEST = "request.json"
_LONGER = 5
"""So many times an import's share of time has the making of an array."""
_MOST_RECORD = 8 << 20


def _reuse_key(context: StepContext) -> Json:
    model = context.model
    return {"sha256": model.sha256, "details": dict(model.details), "asked": context.payload["asked"]}


@step_kind(ARRAY, reuse_key=_reuse_key)
def make_array(context: StepContext) -> StepResult:
    context.progress(None, "planning the array and its programs")
    asked, folder = dict(context.payload["asked"]), context.folder / "source"
    folder.mkdir()
    model = context.model
    name = file_name(model)
    (folder / name).write_bytes(context.store.read_bytes(str(model.sha256)))
    options: dict[str, str] = model.details.get("options") or {}
    common = {key: given_value(value) for key, value in options.items() if key != "on"}
    shapes = {key: {**common, **values} for key, values in asked["shapes"]}
    request = {**asked, "shapes": shapes, "file": name, "kernel": str(model.details.get("function") or "")}
    (folder / _REQUEST).write_text(json.dumps(request))
    seen = str(folder) if context.settings.fence == "off" else MODEL
    behind = Behind(
        "array", ("-m", _PROGRAM, f"{seen}/{_REQUEST}"), (RECORD, DESCRIPTION, HARDWARE), folder,
        "the making of the array", limits_of(context.settings, _LONGER), (COMPILER, PROFILING),
        find_compiler() if asked["run"] else "",
    )  # fmt: skip
    out = behind.run(context)
    found = read_array(out / RECORD, model.source)
    outputs = {
        RECORD: Output(out / RECORD, "application/json"),
        HARDWARE: Output(out / HARDWARE, "application/zip"),
    }
    if (out / DESCRIPTION).is_file():
        outputs[DESCRIPTION] = Output(out / DESCRIPTION, "text/plain; charset=utf-8")
    cycles = sum(program.cycles for program in found.programs)
    return StepResult({"cycles": cycles}, outputs, run_summary=RunSummary(array=found))


def read_array(path: Path, where: str) -> ArrayFound:
    """What is said of the array, if it is a record of one."""
    why = "it has no record"
    try:
        if path.stat().st_size <= _MOST_RECORD:
            said: Any = json.loads(path.read_bytes())
            return ArrayFound.model_validate(said, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError, RecursionError) as error:
        why = type(error).__name__
    raise PenstockError(
        code="array-answer", what=f"the making of the array left no record of one: {why}", where=where,
        hint="this is a defect of Penstock; please report it with the kernel",
    )  # fmt: skip
