"""`python -m penstock.compiler.frontend MODEL [DIM…] OUTDIR`: import one model in a process that can be thrown away.

A DIM is a size that each call says, as seq=1..64. Writes `Program.save(OUTDIR)` of a model that can be simplified and
exits with 0. Else it writes OUTDIR/error.json (the fields of a PenstockError) and exits with 1; with 2 if it was called
wrongly, with 3 if a fault of Penstock's own keeps it from importing (error.json then holds the traceback too). Standard
output stays empty; what the user's code prints goes to standard error, and a line for each stage, which tells whoever
ends it at a limit what to make smaller.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Generator
from pathlib import Path

from penstock.compiler.collecting import seldom_collected
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.lengths import parse_lengths
from penstock.compiler.transforms.canonicalise import simplify

_NO_MEMORY = "can't allocate memory"
"""What PyTorch's allocator says, in a RuntimeError."""

IMPORTED, REFUSED, USAGE, INTERNAL = 0, 1, 2, 3

_SMALLER = {
    "load the model": "build it with fewer and smaller layers, and train nothing in its function",
    "run in PyTorch": "give smaller example inputs, or make its largest layers smaller",
    "find the layers": "give smaller example inputs, or fewer layers",
    "go through the text in PyTorch": "give a shorter text",
}
_FEWER = "give it fewer operations: one block of it, fewer layers, or fewer steps in time"


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print("usage: python -m penstock.compiler.frontend MODEL [DIM…] OUTDIR", file=sys.stderr)  # noqa: T201
        return USAGE
    reference, *dims, out = arguments
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"cannot create {folder}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return USAGE
    with contextlib.redirect_stdout(sys.stderr), _private_temporary_folder(), seldom_collected():
        try:
            program = import_model(reference, dims=parse_lengths(dims), begin=_say)
            _say("simplify")
            simplify(program)  # what later steps could not use is refused now, while the user is looking
            program.save(folder)
        except PenstockError as error:
            _write_error(folder, error.to_dict())
            return REFUSED
        except MemoryError as error:
            _write_error(folder, _too_large(error, reference))
            return REFUSED
        except Exception as error:  # noqa: BLE001  (a disposable process: the parent reads it from the file)
            too_large = isinstance(error, RuntimeError) and _NO_MEMORY in str(error)
            _write_error(folder, _too_large(error, reference) if too_large else _internal(error, reference))
            return REFUSED if too_large else INTERNAL
    return IMPORTED


def _say(stage: str) -> None:
    print(f"importing: {stage}; smaller: {_SMALLER.get(stage, _FEWER)}", file=sys.stderr, flush=True)  # noqa: T201


@contextlib.contextmanager
def _private_temporary_folder() -> Generator[None]:
    """On failure torch-mlir writes its IR to a fixed name in the temporary folder; two imports must not share it."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="penstock-import-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = None
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before


def _too_large(error: Exception, reference: str) -> dict[str, str]:
    described = PenstockError(
        code="import-memory", what="the model needs more memory than its import may have", where=reference,
        limit=" ".join(str(error).split())[-200:], hint="make the model smaller, or allow its import more memory",
    )  # fmt: skip
    return described.to_dict()


def _internal(error: Exception, reference: str) -> dict[str, str]:
    described = PenstockError(
        code="internal-error",
        what=f"importing failed in Penstock itself: {type(error).__name__}: {error}",
        where=reference,
        hint="please report it with the model, if you can share it",
    )
    return {**described.to_dict(), "traceback": traceback.format_exc()}


def _write_error(folder: Path, fields: dict[str, str]) -> None:
    (folder / "error.json").write_text(json.dumps(fields, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
