"""The benchmark `hida`: its points and factors, kept rows, and a page that is what the command writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.hida import bench, lenet, page, sweep
from benchmarks.hida.curves import curves
from benchmarks.registry import Value
from tests.cli.written_pages import kept_run


def test_every_factor_with_every_tile_and_every_group() -> None:
    points = list(sweep.points())
    assert len(points) == len({point.name for point in points}) == 9 * 5 + 9 * 3
    swept = {(point.factor, point.tile) for point in points if point.in_figure_10}
    assert swept == {(factor, tile) for factor in sweep.FACTORS for tile in sweep.TILES}
    for by in sweep.BY:
        assert [p.factor for p in points if p.in_figure_11 and p.by == by] == list(sweep.FACTORS)


def test_the_walk_is_as_large_as_the_published_space() -> None:
    designs = list(lenet.all_factors())
    assert len(designs) == len({one.lanes for one in designs}) == 34_560 > 24_000
    assert lenet.limits() == ["lut<=50540", "ff<=101080", "dsp<=209", "bram18<=266"]


def test_a_row_that_is_kept_is_not_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[str] = []

    def row(point: sweep.Point) -> Mapping[str, Value]:
        made.append(point.name)
        return {"name": point.name, "dsp": 3, "frames_a_second": 2.0, "on_chip_bits": 8}

    monkeypatch.setattr(sweep, "row", row)
    keep = tmp_path / "rows.jsonl"
    first = bench.run(only="resnet18/*/64x32", keep=keep)
    again = bench.run(only="resnet18/*/64x32", keep=keep)
    assert made == [f"resnet18/{name.lower()}/64x32" for name in sweep.NAMED.values()]
    assert first == again
    assert (first.summary["ia_ca_dsp_times"], first.summary["lenet_walk_frames_a_second"]) == (1.0, None)
    assert [json.loads(line)["name"] for line in keep.read_text().splitlines()] == made


def test_curves_say_every_point_and_leave_out_what_has_no_place() -> None:
    drawn = curves("T", {"a": {1: 10.0, 2: 1000.0}, "b": {1: 0.0, 4: 20.0}}, "frames/s", "factor")
    titles = [node.text for node in ElementTree.fromstring(drawn).iter() if node.tag.endswith("title")]
    assert titles == ["T", "a, 1: 10 frames/s", "a, 2: 1,000 frames/s", "b, 4: 20 frames/s"]
    ElementTree.fromstring(curves("none", {}, "", ""))


def test_the_page_is_what_the_command_writes_of_the_kept_run() -> None:
    run = kept_run(page.WRITTEN, "hida", "benchmarks.hida")
    kept = {row["name"]: row for row in run["rows"]}
    assert list(kept) == [name for name in bench.makers() if name in kept]
    assert run["summary"] == bench.summary(kept)
