"""`python -m penstock.profiling.kernels.explore REQUEST OUTDIR`: a kernel in a process that can be thrown away.

REQUEST is a JSON object: `do` is look, improve or compare; `main` the source, `top` its function, `clock_mhz`, `part`.
Only compare runs anything of the kernel. Writes its findings to OUTDIR and exits with 0, or OUTDIR/error.json (a
PenstockError's fields, and what else is wrong) and exits with 1. While sources are tried each is a line for people on
standard output, and one of JSON on standard error.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.compiler.collecting import seldom_collected
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import lay_out, read_sources
from penstock.profiling.kernels.analysis import Analysis, analyse_kernel
from penstock.profiling.kernels.explore.compare import arguments_of, compare_sources
from penstock.profiling.kernels.explore.search import explore_kernel
from penstock.profiling.kernels.fix import fix_kernel
from penstock.profiling.kernels.tried import TriedSource

ANALYSIS, IMPROVED, VALUES, ERROR = "analysis.json", "improved.json", "values.json", "error.json"
UNMOVED = ("not-explored", "no-top")
"""What keeps loops from being moved, while pragmas can still be changed."""
MOST_TEXT = 16_000
"""Characters of a tried source that are told; the best one is given out whole."""


def main(arguments: list[str]) -> int:
    asked: dict[str, Any] = json.loads(arguments[0])
    out = Path(arguments[1])
    work = {"look": _look, "improve": _improve, "compare": _compare}[asked["do"]]
    try:
        for name, found in work(asked).items():
            (out / name).write_text(json.dumps(found) + "\n")
    except PenstockError as error:
        others = [other.one_line() for other in error.others]
        _write_error(out, {**error.to_dict(), **({"others": others} if others else {})})
        return 1
    except MemoryError:
        _write_error(out, {"code": "source-too-large", "what": "the kernel needs more memory than it may have"})
        return 1
    except Exception as error:  # noqa: BLE001  (a disposable process: whoever started it reads this)
        what = f"Penstock itself failed: {type(error).__name__}: {error}"
        _write_error(out, {"code": "internal-error", "what": what, "traceback": traceback.format_exc()})
        return 3
    return 0


def _look(asked: dict[str, Any]) -> dict[str, Any]:
    return {ANALYSIS: _analysed(asked, Path(asked["main"])).to_json()}


def _improve(asked: dict[str, Any]) -> dict[str, Any]:
    """Loops and arrays built anew; where they cannot be, pragmas changed and nothing else."""
    main, top, clock_mhz, part = Path(asked["main"]), asked["top"], asked["clock_mhz"], asked["part"]
    numbers: dict[str, int] = {}
    began = [time.monotonic()]

    def watch(tried: TriedSource) -> None:
        numbers.setdefault(tried.text, tried.number)
        short = tried if len(tried.text) <= MOST_TEXT else replace(tried, text="")
        now = time.monotonic()
        said = {**short.to_json(), "seconds": round(now - began[0], 4)}
        began[0] = now
        sys.stderr.write(json.dumps(said, separators=(",", ":")) + "\n")
        sys.stderr.flush()
        area = ", ".join(f"{count:,} {name.upper()}" for name, count in tried.area.items())
        sys.stdout.write(f"{tried.number:4}  {tried.refused or f'{tried.latency or 0:,} cycles, {area}'}\n")
        sys.stdout.flush()

    try:
        found = explore_kernel(
            main, top, clock_mhz, part, asked["limits"], objective=asked["objective"], trials=asked["trials"],
            watch=watch, compare=False, seconds=asked["seconds"],
        )  # fmt: skip
        text, said, chosen = found.text, {"way": "loops", **found.to_json()}, found.chosen
    except PenstockError as error:
        if error.code not in UNMOVED or numbers:
            raise
        fixed = fix_kernel(main, top, clock_mhz, part, trials=asked["trials"], watch=watch)
        text = fixed.text.encode(errors="replace").decode()
        said, chosen = {"way": "pragmas", "unmoved": error.one_line(), **fixed.to_json()}, numbers.get(fixed.text, 0)
    sources = read_sources(main)
    with tempfile.TemporaryDirectory(prefix="penstock-improved-") as scratch:
        after = _analysed(asked, lay_out(sources, text, Path(scratch)))
    return {IMPROVED: {"text": text, "chosen": chosen, "said": said, "after": after.to_json()}}


def _compare(asked: dict[str, Any]) -> dict[str, Any]:
    """The source and another text of it, compiled and run on the same random numbers."""
    main, top = Path(asked["main"]), asked["top"]
    text = Path(asked["other"]).read_text()
    compared, different = compare_sources(read_sources(main), top, text, tuple(arguments_of(main, top)))
    return {VALUES: {"compared": compared, "different": different}}


def _analysed(asked: dict[str, Any], main: Path) -> Analysis:
    return analyse_kernel(main, asked["top"], asked["clock_mhz"], asked["part"])


def _write_error(out: Path, fields: dict[str, Any]) -> None:
    (out / ERROR).write_text(json.dumps(fields) + "\n")


if __name__ == "__main__":
    with seldom_collected():
        sys.exit(main(sys.argv[1:]))
