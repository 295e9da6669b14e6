"""The FIFO benchmark's convolutional networks: what is counted as a FIFO, what as lines, and what a row says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import fifo, fifo_cnns
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from tests.compiler.frames import FRAMES, imported


@pytest.fixture(scope="module")
def designed() -> tuple[Evaluator, Evaluation]:
    """Two convolutions and a shortcut past them, as the first guess lays them out."""
    layer, shape = FRAMES["residual"]
    evaluator = Evaluator.create(prepare(imported(layer(), shape), "w8a8"), "kv260", quantize="w8a8")
    return evaluator, evaluator.evaluate(evaluator.space.default_params())


def test_fifos_and_lines_are_counted_apart(designed: tuple[Evaluator, Evaluation]) -> None:
    evaluator, found = designed
    network, depths = evaluator.assembler.network(found.design), found.design.fifo_depths
    deeper = {name: 2 * depth for name, depth in depths.items()}
    once = fifo_cnns.fifo_bytes(network, depths)
    assert abs(fifo_cnns.fifo_bytes(network, deeper) - 2 * once) <= 1
    shortcut = 6 * 6 * 3  # bytes of the frame, of which the shortcut waits for some rows
    assert once > shortcut // 4
    lines = fifo_cnns.line_bytes(network)
    assert lines >= 2 * 3 * (2 * 6 + 2), "two layers of three channels: two rows and two columns each, at least"
    assert fifo_cnns.line_bytes(network.with_depths(deeper)) >= lines


def test_rows_are_asked_for_by_name_and_stand_beside_what_was_published(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def row(network: fifo_cnns.Cnn) -> dict[str, object]:
        made.append(network.name)
        evidence = "modelled" if network.name == "cnn/yolov5n" else "simulated"
        return {"bytes_fifo": network.published // 2, "bytes_published": network.published,
                "sizing_cpu_s": float(len(made)), "evidence": evidence}  # fmt: skip

    monkeypatch.setattr(fifo, "row_of", row)
    found = fifo.run("cnn/")
    assert made == ["cnn/resnet8", "cnn/resnet20", "cnn/mobilenet_v2", "cnn/yolov5n"]
    assert [one.published for one in fifo_cnns.CNNS] == [39_809, 57_952, 341_344, 1_465_118]
    assert (found.evidence, found.summary["networks"], found.summary["cnns_below_published"]) == ("modelled", 0, 4)
    assert (found.summary["cnn_bytes_vs_published_max"], found.summary["cnn_sizing_cpu_s_max"]) == (0.5, 4.0)
    assert fifo.run("cnn/resnet8").evidence == "simulated"


def test_a_network_that_fits_at_no_setting_is_a_row_that_says_so(
    monkeypatch: pytest.MonkeyPatch, designed: tuple[Evaluator, Evaluation]
) -> None:
    def explored(*_: object) -> None:
        raise PenstockError(code="nothing-fits", what="none", where="", limit="3.5 times the bram18", hint="")

    monkeypatch.setattr(fifo_cnns, "load_program", lambda *_: designed[0].program)
    monkeypatch.setattr(fifo_cnns, "explore", explored)
    found = fifo.run("cnn/resnet8")
    assert (found.rows[0]["bytes_fifo"], found.rows[0]["note"]) == (None, "3.5 times the bram18")
    assert (found.summary["cnns"], found.summary["cnns_below_published"]) == (1, 0)
    assert found.summary["cnn_bytes_vs_published_max"] is None


def test_a_row_sizes_what_its_search_found(
    monkeypatch: pytest.MonkeyPatch, designed: tuple[Evaluator, Evaluation]
) -> None:
    """No FIFO is deeper than before, and a run too long to simulate keeps its depths and says so."""
    evaluator, found = designed
    monkeypatch.setattr(fifo_cnns, "load_program", lambda *_: None)
    monkeypatch.setattr(Evaluator, "create", staticmethod(lambda *_, **__: evaluator))
    best = type("Best", (), {"evaluation": found})()
    monkeypatch.setattr(fifo_cnns, "explore", lambda *_: type("Explored", (), {"best": best})())
    network = replace(fifo_cnns.CNNS[0], name="cnn/residual")
    row = fifo_cnns.row_of(network)
    assert 0 < int(str(row["bytes_fifo"])) <= int(str(row["bytes_before"])) < int(str(row["bytes_with_lines"])) * 10
    assert row["evidence"] == "simulated"
    monkeypatch.setattr(fifo_cnns, "MOST_EVENTS", 0)
    row = fifo_cnns.row_of(network)
    assert (row["bytes_fifo"], row["evidence"]) == (row["bytes_before"], "modelled")
