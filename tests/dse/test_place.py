"""Placement of whole designs: into the design record and back, with decisions by hand kept or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.finishing import placement
from penstock.dse.finishing.placement import Placement, place
from penstock.dse.partition import partition, site_of
from tests.compiler.designs import Dense, build_network


@pytest.fixture(scope="module")
def evaluated() -> tuple[Evaluator, Evaluation]:
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    evaluator = Evaluator.create(program, "u55c")
    return evaluator, evaluator.evaluate({})


def placed(evaluated: tuple[Evaluator, Evaluation], design: Design | None = None) -> Placement:
    evaluator, evaluation = evaluated
    network = evaluator.assembler.network(evaluation.design)
    return place(network, evaluator.platform, evaluator.assembler.library, design)


def test_a_placement_goes_into_the_record_and_is_kept(evaluated: tuple[Evaluator, Evaluation]):
    evaluator, evaluation = evaluated
    found = placed(evaluated)
    record = found.record(evaluation.design)
    network = evaluator.assembler.network(evaluation.design)
    assert set(record.dies) == {t.name for t in network.tasks}
    assert set(network.channels) <= set(record.memories)
    read = Design.from_json(record.to_json())
    assert read.digest() == record.digest() != evaluation.design.digest()
    again = placed(evaluated, read)
    assert dict(again.partition.dies) == dict(found.partition.dies)
    assert {n: u.kind for n, u in again.allocation.uses.items()} == dict(record.memories)
    assert again.partition.proven
    assert again.svg() == found.svg()


def test_a_record_that_does_not_fit_is_refused_as_a_search_would(evaluated: tuple[Evaluator, Evaluation]):
    """Even where it leaves nothing to decide."""
    found = placed(evaluated)
    graph = found.partition.graph.pinned(dict(found.partition.dies))
    site = found.partition.site
    tight = replace(site, limits={die: Resources(lut=1) for die in site.dies})
    with pytest.raises(PenstockError) as caught:
        partition(graph, tight)
    assert caught.value.code == "does-not-fit"


def test_logic_and_memories_of_all_dies_are_the_designs(evaluated: tuple[Evaluator, Evaluation]):
    evaluator, evaluation = evaluated
    found = placed(evaluated)
    network = evaluator.assembler.network(evaluation.design)
    used, logic = Resources(), Resources()
    for die in found.allocation.limits:
        used, logic = used + found.allocation.used(die), logic + found.allocation.logic[die]
    for task in network.tasks:
        for nest in task.nests:
            logic = logic - nest.logic
    assert logic == Resources()
    assert used.dsp == evaluation.figures.resources.dsp


def test_decisions_by_hand_are_kept_or_refused(evaluated: tuple[Evaluator, Evaluation]):
    _, evaluation = evaluated
    record = placed(evaluated).record(evaluation.design)
    task, fifo = next(iter(record.dies)), next(iter(evaluation.design.fifo_depths))
    moved = placed(evaluated, replace(evaluation.design, dies={task: "slr2"}, memories={fifo: "bram"}))
    assert moved.partition.dies[task] == "slr2"
    assert moved.allocation.uses[fifo].kind == "bram"
    with pytest.raises(PenstockError, match="'slr5'"):
        placed(evaluated, replace(evaluation.design, dies={task: "slr5"}))
    with pytest.raises(PenstockError, match="no such buffer"):
        placed(evaluated, replace(evaluation.design, memories={"nothing": "bram"}))
    with pytest.raises(PenstockError, match="cannot be built of lutram"):
        placed(evaluated, replace(evaluation.design, memories={fifo: "lutram"}))


def test_the_record_refuses_what_is_no_kind_and_no_die(evaluated: tuple[Evaluator, Evaluation]):
    document = evaluated[1].design.to_json()
    assert "dies" not in document
    with pytest.raises(PenstockError, match="'flash' is unknown"):
        Design.from_json({**document, "memories": {"buffer": "flash"}})
    with pytest.raises(PenstockError, match="not the name of a die"):
        Design.from_json({**document, "dies": {"fc1": 2}})


def test_pictures_and_tables_of_a_placement(evaluated: tuple[Evaluator, Evaluation]):
    found = placed(evaluated)
    assert found.svg().count("<svg") == 2
    assert all(name in found.table() for name in [*found.partition.dies, *found.allocation.uses])


def test_what_dies_are_far_from_holding_is_refused_before_integer_programs_are_asked(
    evaluated: tuple[Evaluator, Evaluation], monkeypatch: pytest.MonkeyPatch
):
    def asked(*_: object, **__: object) -> None:
        raise AssertionError("an integer program was asked")

    evaluator, evaluation = evaluated
    network, library = evaluator.assembler.network(evaluation.design), evaluator.assembler.library
    small = site_of(evaluator.platform, share=0.0002)
    monkeypatch.setattr(placement, "site_of", lambda _: small)
    monkeypatch.setattr(placement, "partition", asked)
    with pytest.raises(PenstockError, match="exceeds what dies and links have") as caught:
        place(network, evaluator.platform, library, divide=True)
    assert caught.value.code == "does-not-fit"
    with pytest.raises(AssertionError, match="asked"):
        place(network, evaluator.platform, library)
