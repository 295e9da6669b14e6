"""From a network to FIFO depths: the latest schedule, a linear program on token curves; then shrunk by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import Network, Rules
from penstock.dse.fifo.cost import total_bits
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.effort import Effort, SizingProgress
from penstock.dse.fifo.equalise import NORMAL, slower_network
from penstock.dse.fifo.known_failures import KnownFailures
from penstock.dse.fifo.latest import blocks_of, latest_schedule
from penstock.dse.fifo.measure import MeasuredDepths, SimulatedRuns
from penstock.dse.fifo.moved import moved_depths
from penstock.dse.fifo.periodic import periodic_depths
from penstock.dse.fifo.shrinking import shrink
from penstock.dse.fifo.single_slots import with_single_slots
from penstock.dse.support.budgets import SIMULATIONS

_FOR_SINGLES = 1 / 2
"""Of the budget of shrinking, beside it, at most: where few tokens are wide a dozen runs are enough."""
_MOVES_A_RUN = 2
"""Events of tasks that are moved, for one that may be simulated: they take a sixth of the time."""
_MUCH_LATER = 1000
"""Times as late as a frame could end: no bound on one that only has to come through."""
_MUCH_MORE = 2
"""Times the bits of depths that suffice: others are not tried."""
_MOST_MOVED = 15_000_000  # tokens of all channels and inputs together, of tasks that are moved: two gigabytes
_MOST_TOKENS = 5_000_000  # of all channels together, for which curves are laid out in memory


@dataclass(frozen=True)
class Sizing:
    """Depths at which a simulation ran to its end: that they do not deadlock is seen, not assumed.

    `bound` are bits that no sufficient depths can be below. FIFOs that are `open` may be smaller: the budget ended
    before that was known.
    """

    depths: Mapping[str, int]
    bits: int
    bound: int
    latency: int
    unbounded_latency: int
    simulations: int
    work: int
    open: tuple[str, ...] = ()
    evidence: Literal["simulated"] = "simulated"


def size_fifos(
    network: Network,
    rules: Rules,
    *,
    tolerance: float = 0.0,
    least: int = LEAST_DEPTH,
    frames: int = 1,
    simulations: int = SIMULATIONS,
    effort: Effort | None = None,
    known: KnownFailures | None = None,
    start: Mapping[str, int] | None = None,
    most: Mapping[str, int] | None = None,
    progress: SizingProgress = lambda _: None,
    equalisation: int = NORMAL,
    singles: bool = False,
    first_only: bool = False,
) -> Sizing:
    """The fewest bits of FIFO with which no frame ends later than with unbounded FIFOs, by at most `tolerance`.

    With an `equalisation` (`equalise.py`), none ends later than with unbounded FIFOs and tasks that are as slow as that
    says.

    `simulations`, or the `effort` that stands for it, is the budget of shrinking; `frames` runs several inputs in a
    row, so that their distance is kept too. `known` are depths that do not suffice for as many or fewer inputs, `start`
    such as may suffice. FIFOs in `most` are to be no deeper, in the run that all is compared with too. With `singles`,
    FIFOs of wide tokens get one slot in the end where that costs no time, whatever the `least` (`single_slots.py`).
    With `first_only`, frames after the first have to come through, whenever that is.
    """
    limits = most or {}
    bits = {c.name: c.bits for c in network.channels if c.kind == "fifo"}
    measure = SimulatedRuns(network, rules, frames)
    budget = effort or Effort.of(simulations)
    free = measure.unbounded(limits)
    if not free.ends:
        stuck = measure.deadlock(dict.fromkeys(measure.fifos))
        raise PenstockError(
            code="deadlock", what=f"the network stops for ever: {stuck}", where=network.name,
            limit="its FIFOs are unbounded, so no depth helps" if not limits else f"{len(limits)} FIFOs are limited",
            hint="break the cycle, or deepen its blocks",
        )  # fmt: skip
    tokens = network.tokens()
    top = {name: max(least, min(tokens[name], limits.get(name, tokens[name]))) for name in bits}
    held = {name: max(least, high) for name, high in free.high_water.items()}
    allowed, starts, planned = free.stretched(tolerance), [held], [_planned(network, rules)]
    if equalisation:
        slower = slower_network(network, rules, equalisation)
        ends = SimulatedRuns(slower, rules, frames).unbounded(limits).ends
        allowed = tuple([max(own, later) for own, later in zip(allowed, ends, strict=True)])
        planned.append(_planned(slower, rules))
    if first_only:
        allowed = (allowed[0], *(end * _MUCH_LATER for end in allowed[1:]))
    measure.allowed = allowed
    likely: list[tuple[Mapping[str, int] | None, Mapping[str, int]]] = [(depths, top) for depths in (*planned, start)]
    ways = (allowed, free.ends) if tolerance else (allowed,)  # later ones may turn out to be too late
    for ends in dict.fromkeys(ways):
        if (latest := latest_schedule(network, rules, ends, limits)) is None:
            continue
        likely.append((latest.depths, top))
        if frames * sum(tokens.values()) <= _MOST_MOVED:
            moved = moved_depths(latest, bits, blocks_of(network), limits, budget.work * _MOVES_A_RUN)
            ahead = {name: max(depth, limits.get(name, 0)) for name, depth in moved.items()}
            likely += [(moved, tokens), (ahead, tokens)]
    wishes = [
        {name: min(max(least, depths[name]), highest[name]) for name in bits}
        for depths, highest in likely if depths is not None
    ]  # fmt: skip
    tried: list[dict[str, int]] = []
    for wished in sorted(wishes, key=lambda depths: total_bits(depths, bits)):
        if wished in tried or total_bits(wished, bits) > _MUCH_MORE * total_bits(starts[0], bits):
            continue
        tried.append(wished)
        seen = measure(wished)
        if seen.within(allowed):  # slots that were never taken are not needed either
            starts.append({name: max(least, min(depth, seen.high_water[name])) for name, depth in wished.items()})
            starts.sort(key=lambda depths: total_bits(depths, bits))
    found = shrink(
        measure, starts, top, bits, allowed=allowed, ahead=limits, least=least, simulations=budget.simulations,
        exhausted=lambda: measure.work >= budget.work, known=known, progress=progress,
    )  # fmt: skip
    depths, bound = found.depths, found.bound
    if singles and least > 1:
        runs, work = measure.count + budget.simulations * _FOR_SINGLES, measure.work + budget.work * _FOR_SINGLES
        depths = with_single_slots(
            measure, depths, bits, allowed=allowed, ahead=limits,
            exhausted=lambda: measure.count >= runs or measure.work >= work,
        )  # fmt: skip
        bound = max(sum(bits.values()), bound - sum(bits.values()))  # at least two slots each cost what was proven
    final = measure(depths)
    _check(final, allowed, network)
    bits_found = total_bits(depths, bits)
    return Sizing(depths, bits_found, bound, final.ends[0], free.ends[0], measure.count, measure.work, found.open)


def _planned(network: Network, rules: Rules) -> Mapping[str, int] | None:
    """Depths by the linear program; None for a network with a cycle, which has no start times, or of great length."""
    if sum(network.tokens().values()) > _MOST_TOKENS:
        return None
    try:
        return periodic_depths(network, rules)
    except PenstockError as error:
        if error.code != "cyclic-network":
            raise
        return None


def _check(final: MeasuredDepths, allowed: tuple[int, ...], network: Network) -> None:
    """Shrinking only ever keeps what it has seen to suffice; a run that says otherwise is not reproducible."""
    if not final.within(allowed):
        raise PenstockError(
            code="sizing-failed", what=f"with the final depths frames end by {final.ends or 'never: a deadlock'}",
            where=network.name, limit=f"frames must end by {allowed}", hint="report this network",
        )  # fmt: skip
