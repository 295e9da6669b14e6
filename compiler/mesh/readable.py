"""A plan for people: where the grid went, how every load is served, which loop nest a core so runs."""

from __future__ import annotations

from penstock.compiler.mesh.cost import dram_bytes, paper_cycles
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan, MeshPlan
from penstock.compiler.mesh.planner import MeshMeasured, Planned
from penstock.compiler.mesh.simulate import over_time
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh_record import MeshRecord

REPORTED = 5


def served(load: LoadPlan, traffic: Traffic) -> str:
    """Where a core has a load's tiles from."""
    machine = traffic.machine
    if not load.share:
        return "global"
    names = [machine.core_dims[d] for d in load.share]
    return ("broadcast along " if len(names) == 1 else "broadcast, a wavefront along ") + " then ".join(names)


def nest_of(plan: MeshPlan, traffic: Traffic) -> list[str]:
    """The program of every core, as loops."""
    mapping, facts, machine = plan.mapping, plan.facts, traffic.machine
    grid = facts.program.grid
    taken = [f"{machine.core_dims[d]} = {grid[dim].name}" for d, dim in enumerate(mapping.spatial) if dim is not None]
    lines = [f"parallel over {', '.join(machine.core_dims)}: {', '.join(taken)}"]
    for level, (dim, trip) in enumerate(zip(mapping.order, mapping.trips, strict=True)):
        lines += _loads(plan, traffic, level, "  " * (level + 1))
        lines.append("  " * (level + 1) + f"for {grid[dim].name} in {trip} turns")
    depth = "  " * (len(mapping.order) + 1)
    lines += _loads(plan, traffic, len(mapping.order), depth)
    for at, phase in enumerate(facts.phases):
        rounds = "once" if phase.most == 1 else f"for {phase.most} rounds" + (" at most" if phase.extent.terms else "")
        lines.append(
            f"{depth}{rounds}: {phase.cycles:,.0f} cycles" + (f", {phase.stored:,} bytes out" if phase.stored else "")
        )
        lines += _loads(plan, traffic, INSIDE, depth + "  ", at)
    return lines


def _loads(plan: MeshPlan, traffic: Traffic, level: int, indent: str, phase: int | None = None) -> list[str]:
    return [
        f"{indent}load {fact.load.access.tensor} ({fact.load.where}): {plan.tiles(i)} x {fact.bytes:,} bytes, "
        f"{served(load, traffic)}, {load.buffers} buffer{'s' if load.buffers > 1 else ''}"
        for i, (fact, load) in enumerate(zip(plan.facts.loads, plan.loads, strict=True))
        if load.level == level and phase in (None, fact.phase)
    ]


def record_of(measured: MeshMeasured, traffic: Traffic) -> dict[str, object]:
    """One plan, for programs."""
    plan, machine = measured.plan, traffic.machine
    return {
        "blocks": dict(plan.facts.program.blocks),
        "simulated_cycles": measured.run.cycles,
        "extended": measured.run.extended,
        "modelled_cycles": measured.modelled,
        "paper_model_cycles": paper_cycles(plan, traffic),
        "model_error_pct": measured.error_pct,
        "outside_bytes": dram_bytes(plan, traffic),
        "loads": [
            {"tensor": fact.load.access.tensor, "served": served(load, traffic), "buffers": load.buffers,
             "tiles": plan.tiles(i), "times": plan.events(i)}
            for i, (fact, load) in enumerate(zip(plan.facts.loads, plan.loads, strict=True))
        ],
        "nest": nest_of(plan, traffic),
        "links": {
            f"{link.network}{list(link.source[1])}": float(busy) / measured.run.cycles
            for link, busy in zip(machine.links, measured.run.busy[: len(machine.links)], strict=True)
        },
    }  # fmt: skip


def drawn_of(measured: MeshMeasured, traffic: Traffic, kernel: str, bound: float) -> MeshRecord:
    """What a page draws of a plan: cores and links by their share of the run, cores over time."""
    machine, run = traffic.machine, measured.run
    at = {machine.scratchpad_of(core): i for i, core in reversed(list(enumerate(machine.cores)))}
    bins, shown = over_time(measured.plan, traffic, run)
    carried = [float(busy) / run.cycles for busy in run.busy]
    return {
        "kernel": kernel, "mesh": machine.name, "title": machine.title, "clock_mhz": machine.clock_mhz,
        "blocks": ", ".join(f"{k} {v}" for k, v in measured.plan.facts.program.blocks.items()),
        "cycles": run.cycles, "modelled": measured.modelled, "bound": bound, "shown_cycles": shown,
        "extents": list(machine.extents),
        "cores": [round(float(busy) / run.cycles, 4) for busy in run.cores],
        "links": [
            [link.network, at.get(link.source, -1), at.get(link.target, -1), round(share, 4)]
            for link, share in zip(machine.links, carried[: len(machine.links)], strict=True)
        ],
        "channels": [
            [f"{name}{list(place)}", round(share, 4)]
            for (name, place), share in zip(machine.channels, carried[len(machine.links) :], strict=True)
        ],
        "over_time": [[round(float(part), 3) for part in row] for row in bins],
        "nest": nest_of(measured.plan, traffic),
    }  # fmt: skip


def report_of(planned: Planned, traffic: Traffic, name: str) -> dict[str, object]:
    machine = traffic.machine
    return {
        "kernel": name,
        "mesh": machine.name,
        "clock_mhz": machine.clock_mhz,
        "plans_weighed": planned.weighed,
        "plans_passed": planned.passed,
        "plans_left_out": planned.left_out,
        "left_out_bound_cycles": planned.left_out_bound,
        "lower_bound_cycles": planned.bound,
        "lower_bound": planned.reason,
        "gap_pct": planned.gap_pct,
        "evidence": "simulated",
        "plans": [record_of(measured, traffic) for measured in planned.measured[:REPORTED]],
    }


def _left_out(planned: Planned) -> list[str]:
    if not planned.left_out:
        return []
    least = f"none takes below {planned.left_out_bound:,.0f} cycles"
    return [f"left out  {planned.left_out:,} plans, too many to weigh; {least}"]


def lines_of(planned: Planned, traffic: Traffic, name: str) -> list[str]:
    machine, best = traffic.machine, planned.best
    blocks = ", ".join(f"{k} {v}" for k, v in best.plan.facts.program.blocks.items())
    busiest = int(best.run.busy.argmax())
    links = len(machine.links)
    what = (
        f"{machine.links[busiest].network} at {list(machine.links[busiest].source[1])}"
        if busiest < links
        else f"{machine.channels[busiest - links][0]}{list(machine.channels[busiest - links][1])}"
    )
    micros = best.run.cycles / machine.clock_mhz
    return [
        f"kernel    {name} on {machine.title}, {machine.clock_mhz:g} MHz",
        f"blocks    {blocks or 'none'}",
        f"cycles    {best.run.cycles:,.0f}, {micros:,.1f} us [simulated{', extended' if best.run.extended else ''}]; "
        f"{best.modelled:,.0f} [modelled], {paper_cycles(best.plan, traffic):,.0f} by the paper's model",
        f"bound     {planned.bound:,.0f} cycles: {planned.reason}; the plan is {planned.gap_pct:.1f} % above",
        f"outside   {dram_bytes(best.plan, traffic):,.0f} bytes; busiest is {what}, "
        f"{best.run.busy.max() / best.run.cycles:.0%} of the run",
        f"weighed   {planned.weighed:,} plans, {planned.passed:,} cannot be better; {len(planned.measured)} simulated",
        *_left_out(planned),
        *nest_of(best.plan, traffic),
    ]
