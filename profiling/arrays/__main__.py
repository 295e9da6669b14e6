"""`python -m penstock.profiling.arrays REQUEST OUTDIR`: an array made for a service, in a process to be thrown away.

REQUEST is a file, an object of JSON: `file` (beside it) and `kernel`, `shapes` (by name, values), `top`, `run` (ways to
try the programs), and the array: `mesh`, a shipped one; `description`, a text of TOML; or `platform` with `limits`.
Nothing of the kernel is executed. Writes array.json, array.zip and, if the array was found, array.toml, and exits with
0; else OUTDIR/error.json, the fields of a PenstockError, and exits with 1, or with 3 for a fault of Penstock's own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import traceback
import zipfile
from pathlib import Path
from typing import Any

from penstock.compiler.collecting import seldom_collected
from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.description import load_machine, machine_of, module_of_toml
from penstock.compiler.mesh.instructed.made import ArrayMade, array_for, array_on, kernel_in_shapes
from penstock.compiler.platforms.loader import load_platform
from penstock.compiler.tasks.source import ProgramText
from penstock.profiling.arrays.tried import try_programs

RECORD, DESCRIPTION, HARDWARE, ERROR = "array.json", "array.toml", "array.zip", "error.json"
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def main(arguments: list[str]) -> int:
    request, out = Path(arguments[0]), Path(arguments[1])
    try:
        _write(_made(json.loads(request.read_text()), request.parent), out)
    except PenstockError as error:
        _refuse(out, error.to_dict())
        return 1
    except MemoryError:
        _refuse(out, {"code": "array-memory", "what": "the array needs more memory to be planned than it may have"})
        return 1
    except Exception as error:  # noqa: BLE001  (a disposable process: whoever started it reads this)
        what = f"Penstock itself failed: {type(error).__name__}: {error}"
        _refuse(out, {"code": "internal-error", "what": what, "traceback": traceback.format_exc()})
        return 3
    return 0


def _made(asked: dict[str, Any], folder: Path) -> tuple[ArrayMade, list[str]]:
    text = ProgramText(asked["file"], (folder / asked["file"]).read_text("utf-8", "replace"))
    shapes = kernel_in_shapes(text, asked["kernel"], asked["shapes"])
    if asked["platform"]:
        made = array_for(load_platform(asked["platform"]), asked["limits"], shapes, asked["top"])
    elif asked["description"]:
        machine = machine_of(module_of_toml(asked["description"], "description"))
        made = array_on(machine, shapes, asked["top"])
    else:
        made = array_on(load_machine(asked["mesh"]), shapes, asked["top"])
    return made, list(asked["run"])


def _write(found: tuple[ArrayMade, list[str]], out: Path) -> None:
    made, ways = found
    tried = try_programs(made.array, made.plans, ways)
    array = made.array
    programs = [{**record, **tried.get(key, {})} for key, record in made.programs().items()]
    record = {
        "array": array.text(), "rows": array.rows, "columns": array.columns, "multipliers": array.multipliers,
        "clock_mhz": array.clock_mhz, "programs": programs, "found": made.found(),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        made.write(Path(scratch))
        with zipfile.ZipFile(out / HARDWARE, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(Path(scratch).rglob("*")):
                if path.is_file():
                    info = zipfile.ZipInfo(path.relative_to(scratch).as_posix(), _ZIP_DATE)
                    archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)
    if made.description:
        (out / DESCRIPTION).write_text(made.description)
    (out / RECORD).write_text(json.dumps(record) + "\n")


def _refuse(out: Path, fields: dict[str, Any]) -> None:
    (out / ERROR).write_text(json.dumps(fields) + "\n")


if __name__ == "__main__":
    with seldom_collected():
        sys.exit(main(sys.argv[1:]))
