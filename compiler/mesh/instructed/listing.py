"""A program for people: what each kind of engine does, as loops."""

from __future__ import annotations

from penstock.compiler.mesh.instructed.cycles import ArrayRun
from penstock.compiler.mesh.instructed.design import ArrayDesign, DesignedArray
from penstock.compiler.mesh.instructed.loading import tokens_of
from penstock.compiler.mesh.instructed.planned import ArrayPlan
from penstock.compiler.mesh.instructed.programs import ArrayProgram, OperandPlan
from penstock.compiler.platforms.platform import Platform


def listing_of(program: ArrayProgram) -> list[str]:
    """The program of the cores that work, of the ports that feed them, and of those that write."""
    array, grid = program.array, program.plan.facts.program.grid
    names = ["rounds" if loop.dim is None else grid[loop.dim].name for loop in program.loops]
    lines = [f"cores 0 to {program.rows - 1}, 0 to {program.columns - 1} of {array.text()}"]
    nest = [f"{name} {count}" for name, count in zip(names, program.counts, strict=True)]
    lines.append(f"for {', '.join(nest) or 'one turn'}:")
    for side, one, across in (("left", program.left, program.columns), ("right", program.right, program.rows)):
        lines += [f"  {line}" for line in _operand(side, one, across, names)]
    tall, wide, deep = program.steps
    summed = [name for name, loop in zip(names, program.loops, strict=True) if loop.dim is None]
    lines.append(
        f"  mac   {tall} x {wide} x {deep} steps of {array.tall} x {array.wide} x {array.deep}"
        f"{', added up over ' + summed[0] if summed else ''}"
    )
    words = program.tile_entries * array.parts
    lines.append(f"  store {words} words of sums, {program.sum_tiles} tiles at hand; send on those of the rows above")
    return lines


def _operand(side: str, one: OperandPlan, across: int, names: list[str]) -> list[str]:
    kept = [name for name, flag in zip(names, one.kept, strict=True) if flag]
    how = "send it on" if one.shared else f"pass on what is for the {across - 1} others"
    stays = f", stays through {', '.join(kept)}" if kept else ""
    return [
        f"{'recv ' + side:<11} {one.operand.load.access.tensor}: a tile of {one.words} words, "
        f"{how if across > 1 else 'for itself'}{stays}; {one.set_tiles} together, room for {one.sets * one.set_tiles}"
    ]


def line_of(name: str, plan: ArrayPlan) -> str:
    run = plan.run
    blocks = ", ".join(f"{k} {v}" for k, v in plan.program.product.program.blocks.items() if "BLOCK" in k.upper())
    return (
        f"{name}: {run.cycles:,} cycles [simulated], {run.loading:,} of them to load the program; multipliers "
        f"{run.used_pct:.0f} % at work, no plan of these blocks is below {plan.bound:,}"
        f"{f' ({blocks})' if blocks else ''}"
    )


def record_of(name: str, plan: ArrayPlan) -> dict[str, object]:
    """For programs of others."""
    run: ArrayRun = plan.run
    program = plan.program
    return {
        "name": name, "kernel": program.product.program.name, "blocks": dict(program.product.program.blocks),
        "cycles": run.cycles, "evidence": "simulated", "loading_cycles": run.loading, "bound_cycles": plan.bound,
        "multipliers_used_pct": run.used_pct, "channel_words": run.channel_words, "plans_tried": plan.tried,
        "tokens": len(tokens_of(program)), "program": listing_of(program),
    }  # fmt: skip


def design_lines(design: ArrayDesign, platform: Platform) -> list[str]:
    """Which array was found, what it takes, what holds it back, and which others were simulated."""
    best, have = design.best, design.limits.as_dict()
    shares = {name: used / have[name] for name, used in best.area.items() if used and have[name]}
    scarce = max(shares, key=lambda name: shares[name])
    lines = [
        f"found     {best.cycles:,} cycles for all shapes [simulated], of {design.considered:,} arrays that fit; none "
        f"within these limits is below {design.bound:,}: {design.reason}",
        "takes     " + ", ".join(f"{used:,} of {have[name]:,} {name}" for name, used in best.area.items() if used)
        + f" [modelled]; {scarce} is scarcest",
    ]  # fmt: skip
    if platform.fastest_memory is None:
        lines.append(
            f"channels  {platform.name} has no memory of its own: 4 channels of 4 bytes a cycle are taken for given"
        )
    lines += [f"instead   {_alternative(one)}" for one in design.found[1:]]
    return lines


def _alternative(one: DesignedArray) -> str:
    a = one.array
    return (
        f"{a.rows} x {a.columns} cores of {a.tall} x {a.wide} x {a.deep}, words of {a.word} bytes, scratchpads of "
        f"{one.scratchpad:,}: {one.cycles:,} cycles, {one.area.dsp:,} dsp, {one.area.lut:,} lut, "
        f"{one.area.bram18:,} bram18"
    )
