"""What a chosen design still lacks: FIFOs no larger than they need be, a die for every task, a kind for every memory.

The search does without, because each takes seconds; only what it chooses is finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline.lower import Lowered, lower
from penstock.dse.evaluation.choosing import setting_of
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import held_as_needed, held_between, needs_more_than
from penstock.dse.fifo import prefetched
from penstock.dse.finishing.for_one import for_one_input, held_by, is_less, much_held, sized_ahead
from penstock.dse.finishing.lengths import AtLengths, hold_at_lengths
from penstock.dse.finishing.placement import NO_PLACE, Placement, place
from penstock.dse.rungs import Bench, Ranked, nearly_as_good
from penstock.profiling.network import TaskNetwork
from penstock.profiling.protocol import ProfilingError

UNFIT = (*NO_PLACE, "length-unsupported")
"""Codes of errors that say that a design cannot be finished, where another one may."""
_MOST_SEEN = 4
"""Designs that are told to need little of which runs are asked whether they do: a second or two each."""
Sizings = dict[str, Evaluation]
"""Settings with their FIFOs sized, for one evaluator and bench: what is asked for again is not simulated again."""


@dataclass(frozen=True)
class Finished:
    """A design with every decision made, what the model says of it, and where everything stands."""

    evaluation: Evaluation
    placement: Placement
    at_lengths: AtLengths | None = None
    """Of a model whose sizes each call says: what was simulated at each."""

    @property
    def design(self) -> Design:
        return self.evaluation.design


def finish(
    evaluator: Evaluator,
    evaluation: Evaluation,
    *,
    simulate: bool = True,
    keep: Mapping[str, int] | None = None,
    divide: bool = False,
    network: TaskNetwork | None = None,
    bench: Bench | None = None,
    sizings: Sizings | None = None,
) -> Finished:
    """Size the FIFOs by simulation (or leave them as they are), then place everything.

    With `divide` a design is refused that cannot be divided among the dies. What the record says of dies, memories
    and the depths to `keep` is kept, and refused where it cannot be. FIFOs are sized for `network`, if it is given: the
    design as a tool synthesised it. The `bench` says how much that may simulate, and hears how far it is. What is in
    `sizings` is not sized again, and what is sized of a setting as it was modelled is kept there.
    """
    tight, bench = evaluation, bench or Bench()
    merged = lower(evaluator.program, evaluation.design) if evaluator.program.lengths else None
    held: AtLengths | None = None
    if simulate:
        known, setting = {} if sizings is None or keep or network else sizings, setting_of(evaluation)
        tight = known.get(setting) or _tightened(evaluator, evaluation, keep, network, bench)
        known[setting] = tight
    if simulate and merged is not None:
        tight, held = _held(evaluator, tight, merged, bench, keep or {})
    try:
        placement = _placed(evaluator, tight.design, divide=divide)
    except PenstockError as error:
        if error.code not in NO_PLACE or not divide or tight is evaluation:
            raise
        placement = _placed(evaluator, _where_it_was(evaluator, evaluation.design, tight.design), divide=True)
    design = placement.record(tight.design).allocated()
    return Finished(evaluator.counted(replace(tight, design=design), placement.resources), placement, held)


def _tightened(
    evaluator: Evaluator,
    evaluation: Evaluation,
    keep: Mapping[str, int] | None,
    network: TaskNetwork | None,
    bench: Bench,
) -> Evaluation:
    """With FIFOs that may cost as much time as the `bench` says, unless a limit says that there is none to lose; where
    they hold much, and nothing asks how soon inputs follow each other, with what one input needs."""

    alone = not (keep or network is not None or evaluator.program.lengths)

    def sized(slack: float, one_input: bool = False) -> Evaluation:
        return evaluator.tightened(
            evaluation, keep=keep, network=network, simulations=bench.fifo_simulations, tolerance=slack / 100,
            one_input=one_input, progress=bench.line or _unheard,
        )  # fmt: skip

    ahead = sized_ahead(evaluator, evaluation, bench) if alone else None
    found, slack = sized(bench.fifo_slack), bench.fifo_slack
    if bench.fifo_slack and evaluation.feasible and not found.feasible:
        found, slack, ahead = sized(0), 0, None
    if not alone:
        return found

    def for_one() -> Evaluation:
        said = None if ahead is None else ahead.answer()
        return said if isinstance(said, Evaluation) else sized(slack, one_input=True)

    return for_one_input(evaluator, found, for_one)


def _placed(evaluator: Evaluator, design: Design, *, divide: bool, best: bool = True) -> Placement:
    network, library = evaluator.assembler.network(design), evaluator.assembler.library
    limits = evaluator.may_use
    return place(network, evaluator.platform, library, design, divide=divide, limits=limits, best=best)


def _where_it_was(evaluator: Evaluator, before: Design, sized: Design) -> Design:
    """A design whose tasks stand where they did before its FIFOs were sized: what is nearly full is divided by chance,
    and what needs less has room where the larger one had."""
    before = before.unallocated()
    return replace(sized, dies=_placed(evaluator, before, divide=True).record(before).dies)


def _held(
    evaluator: Evaluator, tight: Evaluation, merged: Lowered, bench: Bench, keep: Collection[str]
) -> tuple[Evaluation, AtLengths]:
    """With FIFOs that are deep enough at every length, and what was simulated at each."""
    design = tight.design
    held = hold_at_lengths(
        merged, evaluator.platform, design.fifo_depths, keep=keep,
        most=prefetched(tight.figures.channels, design.prefetch_bits), slower=design.equalisation > 0,
        simulations=bench.fifo_simulations, progress=bench.line or _unheard,
    )  # fmt: skip
    if not held.deepened:
        return tight, held
    deeper = evaluator.evaluate_design(design.with_fifo_depths(held.depths))
    kept = replace(deeper, params=tight.params, sizing_note=tight.sizing_note, equalised=tight.equalised)
    return kept, held


def _unheard(_: str) -> None:
    """Nobody listens."""


def finish_first(
    evaluator: Evaluator,
    ranked: Sequence[Ranked],
    *,
    simulate: bool = True,
    synthesised: Callable[[Evaluation], TaskNetwork | None] = lambda _: None,
    bench: Bench | None = None,
    sizings: Sizings | None = None,
) -> tuple[Finished, Ranked, Mapping[int, str]]:
    """The first of ranked designs that can be placed, or one that is nearly as good and whose FIFOs hold less; and why
    others, by their positions, were not taken.

    A design may fit a chip whose dies it cannot be divided among. Where none can be divided, the first that fits
    the chip is taken, and where its tasks stand is left to the tools. `synthesised` gives a network as a tool made it.
    """
    passed_over: dict[int, str] = {}
    sizings = {} if sizings is None else sizings
    first: PenstockError | None = None
    known: list[tuple[Ranked, Finished]] = []

    def tried(one: Ranked, divide: bool) -> Finished | str:
        """Or why it cannot be chosen."""
        if divide and (done := next((done for tried, done in known if tried is one), None)) is not None:
            return done
        candidate = evaluator.proven(one.candidate)
        if not candidate.may_be_chosen:
            return f"FIFOs that let it run take too much: {candidate.explanation}"
        if divide and simulate:
            _check_place(evaluator, candidate.design)
        done = finish(
            evaluator, candidate, simulate=simulate, divide=divide, network=synthesised(candidate), bench=bench,
            sizings=sizings,
        )  # fmt: skip
        known.extend([(one, done)] * divide)
        return done

    for divide, (position, one) in product((True, False), enumerate(ranked)):
        if one.measured is None:
            passed_over[position] = one.failure
            continue
        others = ranked[position + 1 :] if divide and simulate else ()
        if (other := _leaner(evaluator, None, one, others, tried)) is not None:
            passed_over[position] = other.instead
            return other.finished, other.ranked, passed_over
        try:
            done = tried(one, divide)
        except PenstockError as error:
            if error.code not in UNFIT:
                raise
            first, done = first or error, error.one_line()
        if isinstance(done, str):
            passed_over[position] = done
            continue
        passed_over.pop(position, None)
        if (other := _leaner(evaluator, done, one, others, tried)) is not None:
            passed_over[position] = other.instead
            done, one = other.finished, other.ranked
        return done, one, passed_over
    raise first or _commonest([one.error for one in ranked if one.error is not None]) or PenstockError(
        code="nothing-evaluated", what="none of the best designs could be measured", where=evaluator.program.name,
        limit=next(iter(passed_over.values()), "there is none"), hint="choose with --evidence modelled",
    )  # fmt: skip


@dataclass(frozen=True)
class _Leaner:
    """A design that is taken instead of one that is as good or a little better, and why."""

    finished: Finished
    ranked: Ranked
    instead: str


def _leaner(
    evaluator: Evaluator,
    done: Finished | None,
    taken: Ranked,
    others: Sequence[Ranked],
    tried: Callable[[Ranked, bool], Finished | str],
) -> _Leaner | None:
    """Where FIFOs hold much once they are sized: of designs that are nearly as good that which needs least, if it finds
    a place and holds less once it is sized as well.

    What FIFOs need is told of one input before, and seen in a few runs: what needs more is not sized. Where a design
    that is not `done` needs much so, it need not be sized to know that another is taken that needs and holds no more
    than is not much. One that cannot be finished is no error.
    """
    near, much = nearly_as_good(taken, others), much_held(evaluator)
    if evaluator.goal.weighs_fifos or not near or much == inf:
        return None
    if done is None:
        if not needs_more_than(much, evaluator, taken.candidate):
            return None
        held, said, enough = held_between(evaluator, taken.candidate, held_as_needed), "need", much
    else:
        held = enough = held_by(evaluator, done.evaluation)
        said = "hold"
        if held <= much:
            return None
    for other in sorted(near, key=lambda one: held_between(evaluator, one.candidate, held_as_needed))[:_MOST_SEEN]:
        if needs_more_than(enough, evaluator, other.candidate, seen=True):
            continue
        try:
            found = tried(other, True)
        except ProfilingError:  # a tool's, or somebody wants no more of it
            raise
        except PenstockError:
            continue
        if isinstance(found, Finished):
            less = held_by(evaluator, found.evaluation)
            if not (less <= much if done is None else is_less(evaluator, less, held)):
                return None
            why = f"FIFOs between its kernels {said} {held:,} bits, those of a design nearly as good hold {less:,}"
            return _Leaner(found, other, why)
    return None


def _check_place(evaluator: Evaluator, design: Design) -> None:
    """Refuse what finds no place on the dies as it was modelled, nor with one slot in each FIFO and one block in each
    converter: there is no need to size it.

    Either is enough. A division of what is nearly full is found by chance, and what is smaller may be less lucky.
    """
    if len(evaluator.platform.dies) == 1:
        return
    as_modelled = design.unallocated()
    try:
        _placed(evaluator, as_modelled, divide=True, best=False)
    except PenstockError as error:
        if error.code not in NO_PLACE:
            raise
        channels = evaluator.assembler.network(design).channels.values()
        smallest = {channel.name: 1 for channel in channels if channel.kind in ("stream", "block")}
        _placed(evaluator, replace(as_modelled, fifo_depths=smallest), divide=True, best=False)


def _commonest(errors: Sequence[PenstockError]) -> PenstockError | None:
    """The cause that most of them share, of the best of these designs."""
    codes = Counter(error.code for error in errors)
    return max(errors, key=lambda error: codes[error.code], default=None)
