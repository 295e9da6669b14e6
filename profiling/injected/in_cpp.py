"""A body in HLS C++, compiled alone and run on random tokens: how many it takes and gives, and its answers.

Its II and depth cannot be measured without an HLS tool: they are held against what its source is predicted to have.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.backend.hls.emit import CSIM_HEADERS, operations_header
from penstock.compiler.backend.hls.lines import word_type
from penstock.compiler.dialects import stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.tasks.bodies import BROKEN
from penstock.compiler.tasks.kinds import is_float
from penstock.profiling.cache import runs_folder
from penstock.profiling.csim import find_compiler
from penstock.profiling.injected.contract import BodyCase
from penstock.profiling.injected.predicted import predict
from penstock.profiling.injected.tokens import draw, first_difference
from penstock.profiling.tool_runner import ToolCommand, ToolOutcome, ToolRunner
from penstock.profiling.work_folder import private_folder

RUNS = 3
_FLAGS = ("-std=c++14", "-O1", "-ffp-contract=off", "-Wno-unknown-pragmas", "-I", ".")
_MEMORY = 4 << 30
_INCLUDE = files("penstock.compiler.backend.hls")


def check_in_cpp(case: BodyCase, tools: ToolRunner) -> None:
    """Raises the first clause that is broken."""
    tokens, body = draw(case, RUNS), case.body
    counts = dict(zip(body.channels, [count for _, count in (*body.reads, *body.writes)], strict=True))
    with private_folder(runs_folder()) as folder:
        for header in CSIM_HEADERS:
            (folder / header).write_text(_INCLUDE.joinpath("include", header).read_text())
        (folder / "penstock_ops.h").write_text(operations_header())
        (folder / "body.cpp").write_text(_bench(case, counts))
        for name, rows in tokens.given.items():
            _write(folder / f"{name}.in", rows)
        compiled = tools.run(ToolCommand(
            (find_compiler(), *_FLAGS, "body.cpp", "-o", "body"), folder, folder / "build", timeout=300.0,
            memory_limit=_MEMORY,
        ))  # fmt: skip
        if compiled.outcome is ToolOutcome.EXIT:
            raise PenstockError(
                code="tool-failed", what=f"{body.name}: the C++ does not compile", where=case.where,
                limit=_errors(folder / "build"), hint="correct the body; its signature is in docs/tasks.md",
            )  # fmt: skip
        if not compiled.ok:
            raise compiled.error("C++ compiler")
        ran = tools.run(ToolCommand(
            (str(folder / "body"),), folder, folder / "run", timeout=60.0, memory_limit=_MEMORY, log_limit=1 << 20
        ))  # fmt: skip
        if not (folder / "counts").is_file():
            found = "it asks for more than there are, or ends badly" if ran.outcome is not ToolOutcome.TIMEOUT else (
                "it does not end"
            )  # fmt: skip
            declared = ", ".join(f"{count} of {pin}" for pin, count in body.reads)
            raise case.broken("tokens", f"{declared} a run", found, "let it take as many tokens as the task does")
        said = dict(line.split() for line in (folder / "counts").read_text().splitlines())
        for name, count in counts.items():
            if int(said[name]) != (0 if name in tokens.given else count * RUNS):
                found = f"{said[name]} left over" if name in tokens.given else f"{said[name]} in {RUNS} runs"
                raise case.broken(
                    "tokens",
                    f"{count} of {body.pins[name]} a run",
                    found,
                    "let it pass as many as the task does",
                )
        for name, wanted in tokens.wanted.items():
            at = first_difference(_read(folder / f"{name}.out", wanted), wanted)
            if at is not None:
                found = _read(folder / f"{name}.out", wanted)[at]
                raise case.broken(
                    "answers", f"{wanted[at].tolist()[:4]} (token {at}: the task's)", found.tolist()[:4],
                    "mend the body, or the task that it stands for",
                )  # fmt: skip
    _check_prediction(case)


def _check_prediction(case: BodyCase) -> None:
    """No contract promises an II below what its own source is predicted to have."""
    found = predict(case.body, case.platform, case.clock_mhz)
    if case.body.ii < found.ii:
        why = f", {found.limit}" if found.limit else ""
        raise PenstockError(
            code=BROKEN, where=case.where,
            what=f"{case.body.name}: ii: declared {case.body.ii}, predicted {found.ii} (line {found.line} of the "
            f"body{why})",
            limit=f"its source, read as `penstock analyse` does, for {case.platform.name} at {case.clock_mhz:g} MHz "
            "[modelled]", hint=f"write ii={found.ii}, or mend the loop",
        )  # fmt: skip


def _bench(case: BodyCase, counts: dict[str, int]) -> str:
    """A program that hands all tokens of all runs to the body, and says what is left and what came."""
    body, kinds = case.body, {name: one.kind for name, one in case.network.channels.items()}
    made = [op for op in case.module.walk() if isinstance(op, stream.StreamOp)]
    types = {op.sym_name.data: word_type(op.result.type.token) for op in made}
    reads = list(body.channels[: len(body.reads)])
    streams = "\n".join(f'  static hls::stream<{types[name]}> s{i}("{name}");' for i, name in enumerate(body.channels))
    fills, drains = list[str](), list[str]()
    for i, name in enumerate(body.channels):
        lanes, number = kinds[name].lanes, "double" if is_float(kinds[name].dtype) else "long long"
        at = "v" if lanes == 1 else "v[l]"
        if name in reads:
            fills.append(
                f'  {{ std::ifstream f("{name}.in"); '
                f"for (int t = 0; t < {counts[name] * RUNS}; ++t) {{ {types[name]} v; "
                f"for (int l = 0; l < {lanes}; ++l) {{ {number} x; f >> x; {at} = x; }} s{i}.write(v); }} }}"
            )
        else:
            drains.append(
                f'  {{ std::ofstream f("{name}.out"); f.precision(9); while (!s{i}.empty()) {{ {types[name]} v = '
                f's{i}.read(); for (int l = 0; l < {lanes}; ++l) f << ({number}){at} << "\\n"; }} }}'
            )
    says = " ".join(f'c << "{name} " << s{i}.size() << "\\n";' for i, name in enumerate(body.channels))
    call = ", ".join(f"s{i}" for i in range(len(body.channels)))
    return "\n".join([
        "#include <fstream>", '#include "ap_int.h"', '#include "hls_stream.h"', '#include "hls_vector.h"',
        '#include "penstock_ops.h"', "namespace written_by_hand {", body.text, "}", "int main() {", streams, *fills,
        f"  for (int run = 0; run < {RUNS}; ++run) written_by_hand::{body.symbol}({call});",
        f'  {{ std::ofstream c("counts"); {says} }}', *drains, "  return 0;", "}", "",
    ])  # fmt: skip


def _write(path: Path, rows: Array) -> None:
    if rows.dtype.kind == "f":
        path.write_text("\n".join(f"{x:.9g}" for x in rows.ravel().tolist()) + "\n")
    else:
        path.write_text("\n".join(str(int(x)) for x in rows.ravel().tolist()) + "\n")


def _read(path: Path, wanted: Array) -> Array:
    words = path.read_text().split()
    kind = np.float64 if wanted.dtype.kind == "f" else np.int64
    return np.array([float(x) if kind is np.float64 else int(x) for x in words], kind).reshape(wanted.shape)


def _errors(logs: Path) -> str:
    text = "".join(path.read_text(errors="replace") for path in sorted(logs.glob("std*.log")))
    lines = [line for line in text.splitlines() if "error" in line]
    return (lines or text.splitlines() or ["no log"])[0][:300]
