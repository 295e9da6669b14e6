"""Filling a device: as many lanes as keep every limit, and what a search starts from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search import start
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.fill import LANES, fill
from penstock.dse.search.start import plan, starting_settings
from penstock.dse.space import fitted
from penstock.dse.space.external import STRIPES
from penstock.dse.space.fitted import SHARE, SHARES
from penstock.dse.space.options import TilingOptions, widest_port
from penstock.dse.space.tiling import Value
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network


def evaluator_of(platform: str, *widths: int) -> Evaluator:
    layers = tuple(Dense(width, False, False) for width in widths or (128, 64))
    return Evaluator.create(build_network("float32", 16, 64, layers, seed=1), platform)


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
    with pytest.raises(PenstockError, match="one lane a kernel takes at least") as caught:
        plan(tiny, tiny.space.choices, "local")
    assert caught.value.code == "nothing-fits"


def test_a_search_starts_with_full_devices() -> None:
    evaluator = evaluator_of("zcu104", 64)
    space = evaluator.space
    settings, modelled = starting_settings(evaluator)
    assert (settings, modelled) == starting_settings(evaluator_of("zcu104", 64))
    assert modelled > len(settings)
    guess = evaluator.evaluate(space.default_params())
    best, *others = (evaluator.evaluate(params) for params in settings)
    assert settings[0]["allocation"] == "fitted"
    assert all(best.values <= one.values for one in others), "the best walks come first"
    assert all(one.feasible for one in (best, *others))
    assert 3 * best.figures.latency < 2 * guess.figures.latency
    assert len(settings) == len({evaluator.evaluate(params).design.digest() for params in settings})


@pytest.mark.parametrize(("platform", "bits"), [("u55c", 512), ("zcu104", 256), ("zu3eg", 128), ("ecp5-85k", 512)])
def test_ports_are_as_wide_as_memory_delivers(platform: str, bits: int) -> None:
    evaluator = evaluator_of(platform)
    assert evaluator.space.design(evaluator.space.default_params()).port_bits == bits


@pytest.mark.parametrize(
    ("platform", "clock_mhz", "bits"),
    [
        ("vu9p-slr", 200.0, 1024),  # DDR4 sustains 654 bits a cycle
        ("vu9p-slr", 300.0, 512),  # 436
        ("u200", 200.0, 1024),
        ("u280", 200.0, 512),  # a bank of HBM, which serves, sustains 489; its DDR4 would more
        ("u55c", 50.0, 1024),  # no port is wider
    ],
)
def test_a_slow_clock_takes_wider_ports(platform: str, clock_mhz: float, bits: int) -> None:
    assert widest_port(load_platform(platform), clock_mhz) == bits


def test_weights_pass_at_what_memory_sustains_at_a_slow_clock_too() -> None:
    """Two banks sustain 2 x 654 bits in a cycle of 200 MHz, of which ports of 512 bits would pass 1,024."""
    program = build_network("int8", 1, 2048, (Dense(512, False, False),), seed=1)
    evaluator = Evaluator.create(program, "vu9p-slr", options=TilingOptions(weights="stream"))
    best = evaluator.evaluate({**evaluator.space.fitted_setting(), "multipliers": "fabric", "walk.fc0": "2"})
    network = evaluator.assembler.network(best.design)
    seen = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=best.design.fifo_depths)
    weights = 2048 * 512 * 8
    assert weights / 1308 < seen.latency < weights / 1024


def test_a_search_starts_with_a_design_that_finds_a_place_on_the_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of the chip know no dies: where the best is refused, another is tried that is not."""
    evaluator = evaluator_of("u55c", 8)
    before, _ = starting_settings(evaluator)
    most = evaluator.evaluate(before[0]).figures.resources.dsp - 1

    def refuse_many(network: TaskNetwork, *_: object, **__: object) -> None:
        if (need := sum(nest.logic.dsp for task in network.tasks for nest in task.nests)) > most:
            raise PenstockError(code="does-not-fit", what=f"{need} DSPs find no place", where="dies", hint="take fewer")

    monkeypatch.setattr(start, "place", refuse_many)
    best, *others = starting_settings(evaluator)[0]
    assert best == before[0]
    placed = [one for params in others if (one := evaluator.evaluate(params)).figures.resources.dsp <= most]
    shares = [evaluator.evaluate({**best, SHARE: share}) for share in SHARES]
    smaller = [one.values for one in shares if one.figures.resources.dsp <= most]
    assert min(one.values for one in placed) <= min(smaller)


@pytest.fixture(scope="module")
def streaming() -> tuple[Evaluator, dict[str, Value]]:
    """Weights from memory of many banks, and the first setting that a search tries."""
    network = build_network("float32", 16, 64, (Dense(128, False, False), Dense(64, False, False)), seed=1)
    evaluator = Evaluator.create(network, "u55c", options=TilingOptions(weights="stream"))
    return evaluator, starting_settings(evaluator)[0][0]


@pytest.mark.slow
def test_where_many_banks_find_no_place_fewer_are_tried(
    monkeypatch: pytest.MonkeyPatch, streaming: tuple[Evaluator, dict[str, Value]]
) -> None:
    """Words of many banks take wires between dies: one of fewer comes second, as fast as the best with fewer."""
    evaluator, first = streaming
    most = int(first[STRIPES])
    assert most > 2

    def refuse_many(_network: TaskNetwork, _platform: object, _library: object, design: Design, **_: object) -> None:
        if design.stripes >= most:
            raise PenstockError(code="does-not-fit", what="short of wires", where="dies", hint="take fewer")

    monkeypatch.setattr(start, "place", refuse_many)
    monkeypatch.setattr(DiesHold, "excess", lambda _, one: float(one.design.stripes >= most))
    best, placed, *_ = starting_settings(evaluator)[0]
    assert best == first
    assert int(placed[STRIPES]) in (most // 2, most // 4)
    value = evaluator.evaluate(placed).values
    for stripes in (most // 2, most // 4):
        assert value <= evaluator.evaluate({**best, STRIPES: stripes}).values


@pytest.mark.slow
def test_a_search_tries_other_numbers_of_banks(streaming: tuple[Evaluator, dict[str, Value]]) -> None:
    """The best of all is looked at with half and with twice as many, whatever it began with."""
    evaluator, best = streaming
    banks = evaluator.space.choices[STRIPES]
    place = banks.index(best[STRIPES])
    found = evaluator.evaluate(best)
    for stripes in (*banks[place - 1 : place], *banks[place + 1 : place + 2]):
        assert found.values <= evaluator.evaluate({**best, STRIPES: stripes}).values


def test_a_model_of_more_kernels_than_are_fitted_one_by_one_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its space has no parameters of single kernels, so nothing may propose one."""
    monkeypatch.setattr(fitted, "MOST_FITTED", 1)
    evaluator = evaluator_of("zcu104", 64, 32)
    settings, _ = starting_settings(evaluator)
    assert settings[0]["allocation"] == "fitted"
    assert not [name for name in evaluator.space.choices if name.startswith(("walk.", "built."))]


def test_each_of_more_than_fifty_kernels_has_a_walk_of_its_own() -> None:
    """As many as the longest decoder blocks have."""
    program = prepare(import_model(f"zoo:mlp?inputs=8&hidden={','.join(['8'] * 27)}&outputs=4"), "w8a8")
    space = Evaluator.create(program, "u55c", options=TilingOptions(weights="stream")).space
    assert 50 < len(space.graph.operations) <= 64
    assert {f"walk.{op.layer}" for op in space.fitting.leading} <= set(space.choices)
    assert len(space.fitting.leading) > 20
