"""Filling a device: as many lanes as keep every limit, and what a search starts from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.fill import LANES, fill
from penstock.dse.search.start import starting_settings
from tests.compiler.designs import Dense, build_network


def evaluator_of(platform: str, kind: str = "float32") -> Evaluator:
    layers = (Dense(128, False, False), Dense(64, False, False))
    return Evaluator.create(build_network(kind, 16, 64, layers, seed=1), platform)


@pytest.mark.parametrize("platform", ["zcu104", "ecp5-85k"])
def test_filled_to_the_limit_and_not_beyond(platform: str) -> None:
    evaluator = evaluator_of(platform)
    params = {**evaluator.space.default_params(), "default_tile_size": 64}
    sizes = evaluator.space.choices[LANES]
    filled = fill(evaluator, params)
    assert filled is not None
    assert evaluator.evaluate(filled).feasible
    place = sizes.index(filled[LANES])
    assert place < len(sizes) - 1
    beyond = evaluator.evaluate({**params, LANES: sizes[place + 1]})
    assert max(beyond.shares.values()) > 1


def test_a_device_on_which_nothing_fits() -> None:
    evaluator = evaluator_of("ecp5-25k")
    platform = evaluator.platform
    tiny = replace(evaluator, platform=replace(platform, fill=tuple((name, 0.001) for name, _ in platform.fill)))
    assert fill(tiny, tiny.space.default_params()) is None
    assert starting_settings(tiny) == tiny.space.first_settings()


def test_a_search_starts_with_full_devices() -> None:
    evaluator = evaluator_of("zcu104")
    space = evaluator.space
    settings = starting_settings(evaluator)
    assert settings == starting_settings(evaluator)
    assert settings[0] == space.default_params()
    assert all(first in settings for first in space.first_settings())
    guess, *found = (evaluator.evaluate(params) for params in settings)
    full = [e for e in found if e.feasible and max(e.shares.values()) > 0.8]
    assert 2 * min(e.figures.latency for e in full) < guess.figures.latency
    assert len(settings) == len({tuple(sorted(s.items())) for s in settings})


@pytest.mark.parametrize(("platform", "bits"), [("u55c", 512), ("zcu104", 256), ("zu3eg", 128), ("ecp5-85k", 512)])
def test_ports_are_as_wide_as_memory_delivers(platform: str, bits: int) -> None:
    evaluator = evaluator_of(platform)
    assert evaluator.space.design(evaluator.space.default_params()).port_bits == bits
