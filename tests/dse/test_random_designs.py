"""Designs drawn at random from the space: each is written as C++ whole, or refused by a rule that the space knows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import emit, prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.services.jobs.scheduled import Scheduled
from penstock.services.jobs.search import finish_given

MODELS = {
    "zoo:mlp": "w8a8",
    "zoo:mlp?inputs=24&hidden=40&outputs=6&batch=3": None,
    "zoo:ffn": "w8a8",
    "zoo:attention": None,
    "zoo:gpt2": "w8a8",
}
EACH = 20


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_drawn_design_compiles_or_is_refused_by_a_rule(model: str, tmp_path: Path) -> None:
    quantize = MODELS[model]
    program = prepare(import_model(model), quantize)
    evaluator = Evaluator.create(program, "u55c", quantize=quantize)
    drawn = random.Random(model)
    compiled = 0
    for number in range(EACH):
        params = {name: drawn.choice(values) for name, values in evaluator.space.choices.items()}
        evaluation = evaluator.evaluate(params)  # which raises nothing: it says what is over which limit
        record = Design.from_json(evaluation.design.to_json())
        assert record == evaluation.design
        if not evaluation.feasible:
            assert "Over the limit: " in evaluation.explanation
            continue
        finished, _ = finish_given(program, evaluator.platform, record, "modelled")
        scheduled = Scheduled.of(program, finished.design)
        folder = tmp_path / str(number)
        emit(scheduled.lowered, folder, part=evaluator.platform.part, clock_mhz=evaluator.clock_mhz)
        compiled += (folder / "hls" / "penstock_top.cpp").is_file()
    assert compiled > EACH // 10, "the draw must reach designs that fit"
