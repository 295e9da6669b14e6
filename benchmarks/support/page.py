"""docs/support.md: made of outcomes, and read back, so that a test needs not try everything to know what it says."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.support.onnx_nodes import NODES, all_operators, write
from benchmarks.support.torch_operations import FUNCTIONS, LAYERS
from benchmarks.support.trial import REFUSED, Outcome, try_function, try_layer, try_reference
from penstock.compiler.frontend.onnx_graph import OPERATORS  # whole, once all that translates is imported

PAGE = Path(__file__).resolve().parents[2] / "docs" / "support.md"
NOT_TRANSLATED = "not translated"
Outcomes = Mapping[str, Mapping[str, Outcome]]
"""By section and operation."""

_HEAD = """# What is supported
Each operation was tried: imported, given the default design, lowered and written as C++. `accelerator`: between two
linear layers. `host`: in PyTorch, at the beginning or the end of a model, or in its middle, between two calls of the
accelerator. `refused`: with the reason that the compiler gives. `penstock check MODEL` says the same of a whole model,
layer by layer. Operands have fixed shapes; another form of the same operation may end otherwise: branches and loops of
ONNX are written out, and refused where their conditions or turns depend on the inputs. Quantised ONNX files (QDQ,
QLinear, QONNX) are computed bit for bit, but as float arithmetic on whole numbers: they do not become integer hardware
as `--quantize w8a8` does.

`python -m benchmarks.support` writes this page anew (some minutes), with names of operations only those rows; a test
holds it.
"""
_ROW = re.compile(r"^\| `(.+)` \| (\w+) \| (.*) \|$")


def expected() -> dict[str, list[str]]:
    """The operations that the page must have, by section."""
    found = {f"PyTorch: {section}": list(rows) for section, rows in FUNCTIONS.items()}
    found["PyTorch: Layers"] = list(LAYERS)
    found["ONNX"] = all_operators()
    return found


def try_one(section: str, operation: str) -> Outcome:
    if section == "PyTorch: Layers":
        return try_layer(operation)
    if section != "ONNX":
        return try_function(FUNCTIONS[section.removeprefix("PyTorch: ")][operation])
    if operation not in (*OPERATORS, *NODES):
        return Outcome(REFUSED, NOT_TRANSLATED)  # the importer knows it by its name alone
    with tempfile.TemporaryDirectory(prefix="penstock-support-") as folder:
        path = Path(folder) / "node.onnx"
        write(operation, path)
        outcome = try_reference(str(path))
    untranslated = outcome.where == REFUSED and operation not in OPERATORS
    return Outcome(REFUSED, NOT_TRANSLATED) if untranslated else outcome


def render(outcomes: Outcomes) -> str:
    return _HEAD + "".join(_section(name, rows) for name, rows in outcomes.items())


def read(text: str) -> dict[str, dict[str, Outcome]]:
    found: dict[str, dict[str, Outcome]] = {}
    section: dict[str, Outcome] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            section = found.setdefault(line.removeprefix("## "), {})
        elif match := _ROW.match(line):
            section[match[1]] = Outcome(match[2], match[3])
    return found


def _section(name: str, rows: Mapping[str, Outcome]) -> str:
    return f"\n## {name}\n" + "".join(_lines(rows))


def _lines(rows: Mapping[str, Outcome]) -> Iterator[str]:
    yield "| operation | where | why |\n|---|---|---|\n"
    for operation, outcome in rows.items():
        yield f"| `{operation}` | {outcome.where} | {outcome.why} |\n"
