"""Every kernel leads back to the line that the user wrote, whatever passes made of its layer on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import helper

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import prepare
from penstock.compiler.places import FILE, joined, places_of
from penstock.compiler.saved_program import load_checked
from penstock.compiler.transforms.editor import Editor, layer_of
from tests.frontend.onnx_files import graph, save

SOURCE = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act = nn.Linear(4, 6), nn.ReLU()

    def forward(self, x):
        return self.act(self.up(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = Block(), nn.Linear(6, 3)

    def forward(self, pixels):
        hidden = self.first(pixels)
        return torch.softmax(self.head(hidden), -1)


def model():
    torch.manual_seed(1)
    return Net(), (torch.rand(2, 4),)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deep/in/a/folder".replace("/", "-"))
    (folder / "net.py").write_text(SOURCE)
    import_model(f"{folder / 'net.py'}:model").save(folder / "saved")
    return folder / "saved"


@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_each_kernel_knows_the_line_that_it_was_written_in(saved: Path, quantize: str | None) -> None:
    program = prepare(load_checked(saved, make_context(), 1 << 24), quantize)
    layers = [layer_of(op) for op in Editor(program).generics()]
    found = {layer: places_of(program.places, layer) for layer in layers}
    assert all(found.values()), found
    lines = {(place.file, place.line, place.text) for places in found.values() for place in places}
    assert lines == {
        ("net.py", 11, "return self.act(self.up(x))"),
        ("net.py", 21, "return torch.softmax(self.head(hidden), -1)"),
    }
    assert {place.layer for place in found["first.up.relu" if "first.up.relu" in found else "first.up"]} == {
        "first.up", "first.act",
    }  # fmt: skip
    text = (saved / FILE).read_text()
    assert str(saved.parent) not in text, "no path of this machine"


def test_a_node_of_an_onnx_file_is_its_own_place(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["grown"], name="grow"), helper.make_node("Abs", ["grown"], ["y"], name="whole"),
    ]  # fmt: skip
    program = import_model(str(save(graph(nodes, {"x": [2, 3]}, ["y"]), tmp_path / "net.onnx")))
    places = {place for found in program.places.values() for place in found}
    assert {(place.file, place.line, place.layer, place.operation) for place in places} == {
        ("", 0, "grow", "ONNX Exp"), ("", 0, "whole", "ONNX Abs"),
    }  # fmt: skip


def test_what_a_pass_adds_belongs_to_the_layer_that_it_is_named_after(saved: Path) -> None:
    places = load_checked(saved, make_context(), 1 << 24).places
    own = places["head"]
    assert own
    assert places_of(places, "head.requantise_2") == places_of(places, "head_3.part") == own
    assert places_of(places, "headless") == places_of(places, "") == ()
    assert joined(places, ["head", "first.up", "head"]) == (*own, *places["first.up"])


@pytest.mark.parametrize(
    "change",
    [
        {"lines": [["/etc/passwd", 1, "", "", ""]]}, {"lines": [["net.py", "1", "", "", ""]]},
        {"lines": [["net.py", 1, "x" * 500, "", ""]]}, {"lines": [["net.py", -1, "", "", ""]]}, {"lines": 7},
        {"layers": {"fc": [99]}}, {"layers": [1]}, {"lines": [["net.py", 1, "\x1b[2J", "", ""]]},
    ],
)  # fmt: skip
def test_places_of_somebodys_making_are_refused(saved: Path, tmp_path: Path, change: dict[str, object]) -> None:
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / FILE).write_text(json.dumps({**json.loads((saved / FILE).read_text()), **change}))
    with pytest.raises(PenstockError, match="no program"):
        load_checked(tmp_path, make_context(), 1 << 24)
