"""A tile program as a model: imported as the task program of its plan, which is kept for pages, and looked at there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.mesh_record import FILE
from penstock.compiler.saved_program import load_checked
from penstock.web.mesh_view import view_mesh
from tests.mesh.answers import EXAMPLES

KERNEL = EXAMPLES / "gemm_int8.py"
TILES = f"tasks:{KERNEL}"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    import_model(f"{TILES}?M=16&N=16&K=8").save(folder)
    return folder


def test_a_kernel_is_imported_as_the_program_of_its_plan(saved: Path) -> None:
    program = load_checked(saved, make_context(), 1 << 30)
    assert [(port.name, port.shape) for port in program.signature.inputs] == [("a", (16, 8)), ("b", (8, 16))]
    assert program.samples is not None
    a, b = program.samples.inputs
    (c,) = program.samples.outputs
    assert (a.astype("int64") @ b == c).all()
    assert program.mesh is not None
    assert program.mesh["mesh"] == "ecp5-85-4x4"
    assert program.notes[0].startswith("gemm was planned onto ecp5-85-4x4")
    (place,) = program.places[""]
    assert (place.file, place.text.partition("(")[0]) == (KERNEL.name, "def gemm")
    assert KERNEL.read_text().splitlines()[place.line - 1].startswith("def gemm("), "its line in the user's file"
    busy = [sum(row) for row in program.mesh["over_time"]]
    assert len(busy) == 16
    # the parts of time are a 48th of the run each: together they are a core's share of it
    assert busy == pytest.approx([48 * share for share in program.mesh["cores"]], rel=0.02)


def test_its_page_draws_cores_and_links(saved: Path) -> None:
    record: dict[str, Any] = json.loads((saved / FILE).read_text())
    shown = view_mesh({**record, "kernel": "<script>", "links": [*record["links"], ["<b>", 0, 1, 0.5]]})
    assert shown.array.count("<rect") == 16
    assert shown.array.count("<line") == len(record["links"]) + 1
    assert shown.over_time.count("<rect") == 16 * 48
    assert "<script>" not in shown.array
    assert "<b>" not in shown.array


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("extents", [4, -4]), ("extents", [1 << 20, 2]), ("cores", [0.5]), ("links", [["n", 0, 99, 0.5]]),
        ("links", "abc"), ("channels", [["d", "much"]]), ("over_time", [[float("inf")]]), ("cycles", True),
        ("title", 7), ("nest", [7]), ("nest", ["x"] * 1000),
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_refused(saved: Path, tmp_path: Path, key: str, value: object) -> None:
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    record: dict[str, Any] = json.loads((saved / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**record, key: value}))
    with pytest.raises(PenstockError, match=f"no program: {key}"):
        load_checked(tmp_path, make_context(), 1 << 30)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"ecp5-85-4x4"', '"ecp5-85"'), r"there is no mesh 'ecp5-85'.*did you mean.*ecp5-85-4x4"),
        (('"ecp5-85-4x4"', '"/etc/passwd"'), r"there is no mesh '/etc/passwd'"),
        (('a, b, c = "int8"', 'a, b, c = "float16"'), r"a is float16.*--set a=float32"),
        (("tl.dot(x, y, total)", "total + tl.dot(x, y) * tl.sin(1.0)"), r"sin, which task programs have not"),
    ],
)
def test_what_cannot_be_a_model_is_said(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    file = tmp_path / "kernel.py"
    text = KERNEL.read_text().replace(*change)
    assert text != KERNEL.read_text()
    file.write_text(text)
    with pytest.raises(PenstockError, match=said):
        import_model(f"tasks:{file}")


def test_a_file_of_neither_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("import triton\nprint('triton')\n")
    with pytest.raises(PenstockError, match=r"no task program.*@triton.jit"):
        import_model(f"tasks:{file}")
