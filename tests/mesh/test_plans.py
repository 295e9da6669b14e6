"""Plans: sharing saves traffic, the bound holds, the simulator agrees with what can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.compiler.mesh import simulate
from penstock.compiler.mesh.cost import dram_bytes, modelled_cycles
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.facts import facts_of
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan, Mapping, MeshPlan
from penstock.compiler.mesh.planner import Reuse, all_plans, plan_programs
from penstock.compiler.mesh.simulate import simulate_plan
from penstock.compiler.mesh.traffic import Traffic
from tests.mesh.answers import CASES
from tests.mesh.plan_execution import execute

GEMM = replace(CASES["gemm"], given={**CASES["gemm"].given, "M": 256, "N": 256, "K": 256})


def test_rounds_of_arithmetic_follow_each_other_when_transfers_cost_nothing() -> None:
    machine = load_machine("mesh-4x8")
    memories = {name: replace(memory, bandwidth=1e12) for name, memory in machine.memories.items()}
    networks = tuple(replace(network, bandwidth=1e12) for network in machine.networks)
    fast = Traffic(replace(machine, memories=memories, networks=networks))
    facts = facts_of(GEMM.program(), machine)
    plan = MeshPlan(
        facts, Mapping((0, 1), (0, 1), (8, 8), (4, 8)), (LoadPlan((1,), INSIDE, 2), LoadPlan((0,), INSIDE, 2))
    )
    each = sum(phase.most * phase.cycles for phase in facts.phases)
    assert each == 16 * 98  # 32 x 32 x 16 is one intrinsic
    assert simulate_plan(plan, fast).cycles == pytest.approx(plan.mapping.waves * each, abs=1e-3)


def test_a_channel_carries_every_byte_once_at_its_pace() -> None:
    machine = load_machine("mesh-4x8")
    traffic = Traffic(machine)
    facts = facts_of(GEMM.program(), machine)
    mapping = Mapping((0, 1), (0, 1), (8, 8), (4, 8))
    for share in ((), (1,)):
        plan = MeshPlan(facts, mapping, (LoadPlan(share, INSIDE, 2), LoadPlan((0,), INSIDE, 2)))
        run = simulate_plan(plan, traffic)
        carried = run.busy[-len(machine.channels) :].sum() * machine.memories["dram"].bandwidth
        assert carried == pytest.approx(dram_bytes(plan, traffic))
        program = GEMM.program()
        read = execute(plan, traffic, GEMM.tensors(program))
        assert read == dram_bytes(plan, traffic) - program.instances * facts.phases[-1].stored


def test_the_best_of_all_is_among_the_five_that_are_simulated() -> None:
    machine = load_machine("mesh-4x8")
    traffic = Traffic(machine)
    program = GEMM.program()
    planned = plan_programs([program], machine, 5, Reuse())
    plans = list(all_plans(facts_of(program, machine), traffic, Reuse()))
    everything = [simulate_plan(plan, traffic).cycles for plan in plans]
    assert planned.weighed + planned.passed == len(plans) > 30
    assert planned.best.run.cycles <= min(everything) * 1.01
    assert min(everything) >= planned.bound
    by_model = sorted(modelled_cycles(plan, traffic) for plan in plans)
    assert sorted(row.modelled for row in planned.measured)[:5] == pytest.approx(by_model[:5])  # nothing was lost


def test_what_is_too_much_to_weigh_is_said_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = load_machine("mesh-4x8")
    whole = plan_programs([GEMM.program()], machine, 5, Reuse())
    monkeypatch.setattr("penstock.compiler.mesh.planner.MOST_WAYS", 2)
    planned = plan_programs([GEMM.program()], machine, 5, Reuse())
    assert planned.left_out > 0
    assert planned.left_out_bound is not None
    assert planned.weighed + planned.passed + planned.left_out == whole.weighed + whole.passed
    assert min(planned.left_out_bound, planned.best.modelled) <= whole.best.modelled


def test_turns_that_are_counted_end_as_if_they_were_run(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = load_machine("mesh-4x8")
    traffic = Traffic(machine)
    program = replace(GEMM, given={**GEMM.given, "M": 1100, "N": 2048, "K": 64}).program()
    plans = list(all_plans(facts_of(program, machine), traffic, Reuse()))[::9]
    counted = [simulate_plan(plan, traffic) for plan in plans]
    monkeypatch.setattr(simulate, "_periods", lambda plan: [0] * len(plan.mapping.order))
    for plan, short in zip(plans, counted, strict=True):
        whole = simulate_plan(plan, traffic)
        assert not whole.extended
        assert short.cycles == pytest.approx(whole.cycles, abs=1e-3)
        assert short.busy == pytest.approx(whole.busy)
        assert short.cores == pytest.approx(whole.cores)


def test_sharing_saves_traffic_and_the_model_is_near() -> None:
    machine = load_machine("mesh-8x8")
    program = replace(GEMM, given={**GEMM.given, "M": 1024, "N": 1024, "BLOCK_SIZE_K": 64}).program()
    shared, alone = (plan_programs([program], machine, 5, Reuse(spatial=on)).best for on in (True, False))
    traffic = Traffic(machine)
    assert dram_bytes(shared.plan, traffic) < 0.4 * dram_bytes(alone.plan, traffic)
    assert shared.run.cycles < alone.run.cycles
    assert shared.modelled == modelled_cycles(shared.plan, traffic)
    assert shared.error_pct < 20
