"""What every search begins with: one kernel's walk is changed at a time, as long as the modelled design gets better.

Its states are settings of the space (`allocation=fitted`), so whatever it finds is a trial like any other. The same
evaluator always gives the same answer: it counts designs, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from random import Random

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.errors import PenstockError
from penstock.dse.bounds.bound import MOST_TOLD_APART
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.binding import MULTIPLIERS
from penstock.dse.search.effort import settings_of
from penstock.dse.search.outside import FED, fed_otherwise, in_blocks, loaded_late, run_ahead, shared_out, striped
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.sides import favoured, regrouped, sides_of
from penstock.dse.search.untangled import untangled
from penstock.dse.search.walk_moves import WalkMoves, anchors, capped, other_walks, small_moves
from penstock.dse.search.ways import followed
from penstock.dse.search.worth import PassedOver, State, Worth, rank_of
from penstock.dse.space.external import STRIPES
from penstock.dse.space.fitted import (
    BUILT,
    BURST,
    COMPACT,
    FAVOUR,
    FITTED,
    IN_TURN,
    ROWS,
    SHARE,
    WALK,
    Allowance,
)
from penstock.dse.space.grouping import BUDGET, GREEDY
from penstock.dse.space.tiling import Choices, Params, Value

_ROUNDS = 3
_MOST_TRIED = 3000
_FOR_ALL_PLACES = 1_250_000
"""Settings times the places of all kernels' frames: each passes on its own, and is timed."""
_WORTH_ANOTHER = 0.4
"""What part of the settings may be tried before a descent from another start is begun."""
_FOR_ANCHORS, _FAR_ABOVE = 0.4, 1.4
"""How many more settings there are for other ways to walk all kernels, where the best is still so many times the
bound."""
_MOST_FRUITLESS, _FOR_WHAT_DOES_NOT_FIT = 12, 24
_FEW_KERNELS = 12
_PADDINGS_OF_MANY = 16
_OF_SETTINGS = 16
"""Of so many settings, two are of all kernels before or behind a place."""
_A_FEW_WALKS = 16

_Ways = Iterable[State]
_Moves = Callable[[Evaluation], _Ways]


@dataclass(frozen=True)
class Descended:
    """The best setting that was found, how many were tried on the way, and those that were timed, the best first."""

    best: Evaluation
    tried: int
    timed: tuple[Evaluation, ...]


def descend(
    evaluator: Evaluator,
    choices: Choices | None = None,
    *,
    enough: float = 0.0,
    rounds: int = _ROUNDS,
    second: SecondProcess | None = None,
    start: Params | None = None,
) -> Descended | None:
    """The best design of a walk for every kernel; None where the space, as far as it is open, has no such designs.

    It ends early with one whose first objective is not above `enough`. With a second process it is quicker. It begins
    with a setting near `start`, if there is one, or else with what suits most models.
    """
    open_to = choices or evaluator.space.choices
    if FITTED not in open_to["allocation"] or not evaluator.space.fitted_setting():
        return None
    return _Descent(evaluator, open_to, enough, second).run(rounds, start)


def rewalked(evaluator: Evaluator, choices: Choices, start: Params) -> Evaluation | None:
    """The best of a few other walks of the largest kernels, all else as in `start`; None if that cannot be laid out."""
    descent = _Descent(evaluator, choices, 0.0, None)
    descent.worth.most = _A_FEW_WALKS
    return descent.only_walks(start)


class _Descent:
    def __init__(self, evaluator: Evaluator, choices: Choices, enough: float, second: SecondProcess | None) -> None:
        self.enough = enough
        self.evaluator, self.space, self.choices = evaluator, evaluator.space, choices
        self.fitting, self.graph = evaluator.space.fitting, evaluator.space.graph
        self.leading = [op for op in self.fitting.leading if f"{WALK}.{op.layer}" in choices]  # none if too many
        self.kernels = len(self.graph.operations)
        if self.kernels > _FEW_KERNELS:  # not all moves can be tried: those of the largest kernels matter most
            self.leading.sort(key=lambda op: -op.work)
        places = sum(prod(op.trips[d] for d in self.space.spatial.get(op.layer, ())) for op in self.graph.operations)
        most = max(1, min(_MOST_TRIED, settings_of(self.kernels, evaluator.may_use.dsp), _FOR_ALL_PLACES // places))
        self.worth = Worth(evaluator, choices, most, second)
        self._evaluate = self.worth.evaluate
        self._more_banks = [striped] if evaluator.goal.weighs_frames else []  # the best may have begun with the fewest

    def run(self, rounds: int, given: Params | None) -> Descended:
        """From the best start, and from the next ones for as long as little was tried."""
        found: list[Evaluation] = []
        known = None if given is None else self._evaluate(self._within(given))
        starts, worth = self._starts() if known is None else [known], self.worth
        starts[0] = self._untangled(starts[0])
        if rank_of(starts[0])[0] >= 1.0:  # what is so far beyond is seldom a matter of walks
            worth.most = min(worth.most, len(worth.seen) + _FOR_WHAT_DOES_NOT_FIT)
        for start in starts:
            more = len(worth.seen) < worth.most * _WORTH_ANOTHER
            if not found or (more and not self._is_enough(min(found, key=rank_of))):
                found.append(self._descend(start, rounds, anchored=not self._flows(start)))
        best = self._fed(self._from_anchors(starts[0], self._elsewhere(min(found, key=rank_of))))
        return Descended(self._seen_to_run(best), len(worth.seen), worth.timed)

    def _from_anchors(self, start: Evaluation, best: Evaluation) -> Evaluation:
        """Of what stays far above a bound that is near for others: descents from ways to walk all kernels alike, the
        fastest first, with settings of their own. Which of them ends best does not show before."""
        far = best.feasible and 0 < self.enough * _FAR_ABOVE < best.values[0]
        if not far or self.kernels > MOST_TOLD_APART or self._flows(start) or self.evaluator.goal.weighs_frames:
            return best
        self.worth.most += int(self.worth.most * _FOR_ANCHORS)
        ways = [way for op in self.leading for way in self._by(anchors, op)(start)]
        for anchor in sorted(self._all(ways), key=rank_of):
            if self._is_enough(best) or not self.worth.may_go_on:
                break
            best = min(best, self._descend(anchor, 1, anchored=False), key=rank_of)
        return best

    def _untangled(self, best: Evaluation) -> Evaluation:
        """Of many kernels not all are turned: with those turned first beside which most waits, in step with others."""
        while self.kernels > _FEW_KERNELS:
            before, best = best, self._best_of(untangled(self.evaluator, self.choices, best), best, more=True)
            if best is before:
                break
        return best

    def only_walks(self, start: Params) -> Evaluation | None:
        best = self._evaluate(dict(start))
        return None if best is None else self._in_turn([self._by(other_walks, op) for op in self.leading], best)

    def _seen_to_run(self, found: Evaluation) -> Evaluation:
        """The best that runs through: all were modelled as if the depths of their FIFOs sufficed."""
        best: Evaluation | PassedOver = found
        while True:
            shown = self.evaluator.evaluate(best.params)
            if best.timed and rank_of(shown) <= rank_of(best):
                return shown
            self.worth.is_known_as(shown)
            best = self.worth.best_seen()

    def _elsewhere(self, best: Evaluation) -> Evaluation:
        """From the best with a few kernels walked otherwise, for as long as there are settings left."""
        draw, fruitless = Random(0), 0
        while self.worth.may_go_on and fruitless < _MOST_FRUITLESS and not self._is_enough(best):
            start = self._evaluate(self._shaken(best, draw))
            fruitless += 1
            if start is None:
                continue
            found = self._descend(start, 1, anchored=False)
            if rank_of(found) < rank_of(best):
                best, fruitless = found, 0
        return best

    def _shaken(self, best: Evaluation, draw: Random) -> State:
        state = dict(best.params)
        for op in draw.sample(self.leading, min(len(self.leading), draw.choice((1, 1, 2, 3)))):
            state[f"{WALK}.{op.layer}"] = draw.choice(self.choices[f"{WALK}.{op.layer}"])
            if draw.random() < 0.5:
                state = followed(self.space, op, state)
            for kind in (BURST, COMPACT, FAVOUR):
                if (name := f"{kind}.{op.layer}") in state and draw.random() < 0.3:
                    state[name] = draw.choice(self.choices[name])
        if draw.random() < 0.3:
            state |= self._smooth
        elif draw.random() < 0.5:
            state |= {name: draw.choice(few) for name, few in self._even.items()}
        if (others := self._other_multipliers(state)) and draw.random() < 0.3:
            state = draw.choice(others)
        return state

    def _descend(self, best: Evaluation, rounds: int, *, anchored: bool = True) -> Evaluation:
        whole: list[_Moves] = [
            lambda best: capped(self.choices, best.params), lambda best: self._other_multipliers(best.params),
            *(lambda best, moves=moves: moves(self.choices, best.params) for moves in FED),
            lambda best: [{**best.params, **self.fitting.streamed_first()}], partial(regrouped, self.choices),
            lambda best: in_blocks(self.choices, best.params),
            lambda best: [{**best.params, **walks} for walks in self.fitting.by_parts],
        ]  # fmt: skip
        small, walks = ([self._by(moves, op) for op in self.leading] for moves in (small_moves, other_walks))
        if anchored:
            best = self._in_turn([self._by(anchors, op) for op in self.leading], best)
        for _ in range(rounds):
            before = best
            best = self._in_turn([*whole, self._by_sides, *small, *walks, *small, self._padded, self._smaller], best)
            if best is before:
                break
        return best

    def _by(self, moves: WalkMoves, op: TensorOp) -> _Moves:
        return lambda best: moves(self.space, self.choices, op, best.params)

    def _in_turn(self, kinds: Sequence[_Moves], best: Evaluation) -> Evaluation:
        """One kind of moves after the other, each from the best until then."""
        coming: dict[int, list[State]] = {}

        def moves(place: int, best: Evaluation) -> list[State]:
            if place not in coming:
                coming[place] = list(kinds[place](best))
            return coming[place]

        def moves_after(place: int, best: Evaluation) -> Iterator[list[State]]:
            for later in range(place + 1, len(kinds)):
                yield moves(later, best)

        for place in range(len(kinds)):
            if self._is_enough(best):
                break
            before, best = best, self._best_of(moves(place, best), best, moves_after(place, best))
            if best is not before:
                coming.clear()
        return best

    def _starts(self) -> list[Evaluation]:
        """The simplest walks, with each kind of adder, as they are and padded; the best first."""
        plain = self._with_best_banks(self._within(self.space.fitted_setting()))
        mixed = {**plain, **self.fitting.mixed()}
        kinds = [{**plain, **self._built(kind)} for kind in self._adders()] or [plain]
        if self.fitting.mixed():
            kinds += [mixed, {**mixed, **{name: True for name in plain if name.startswith(f"{COMPACT}.")}}]
        found = self._all([way for state in kinds for way in self._other_multipliers(state)])
        kinds = [self._best_way([state, *self._other_multipliers(state)]) for state in kinds]
        whole = Allowance(self.evaluator.may_use)
        ways = [{**s, **sizes} for s in self._grouped(kinds) for sizes in ({}, self._sizes(s, whole), self._smooth)]
        found += self._all(ways)
        if found and IN_TURN in self.choices:
            best = min(found, key=rank_of)
            ways = [self._best_of(self._flowing(best.params), best)]
            if ROWS in self.choices:  # what suits plain walks need not suit these, nor the other way round later
                unpadded = [flow for way in (plain, *self._other_multipliers(plain)) for flow in self._flowing(way)]
                ways.append(self._best_of(unpadded, ways[0], more=True))
                ways.append(min((e for e in self._all(unpadded) if e is not ways[1]), key=rank_of, default=ways[0]))
            found += [e for way in {id(w): w for w in ways}.values() if (e := self._well_fed(way)) not in found]
        if not found:
            raise PenstockError(
                code="nothing-fits", what="not even the simplest walk can be laid out",
                where=self.evaluator.program.name, hint="take a larger platform, or relax the limits",
            )  # fmt: skip
        return sorted(found, key=rank_of)

    def _flowing(self, params: Params) -> Iterator[State]:
        """Walks with which each kernel takes in what the one before it makes as it comes, and weights pass once."""
        walks = self.fitting.flowing(self.space.settings(params))
        yield from ({**params, **walks, IN_TURN: in_turn} for in_turn in self.choices[IN_TURN] if walks)

    def _well_fed(self, best: Evaluation) -> Evaluation:
        """With lanes for one time or another, rows in blocks, and what feeds them, as suits the walks of a start."""
        best = self._best_of(shared_out(self.choices, best.params), best)
        fed = (best.params, *self._other_multipliers(best.params))  # weights pass again, beside more or less
        return self._fed(self._best_of([way for o in fed for way in in_blocks(self.choices, o)], best, more=True))

    def _fed(self, best: Evaluation) -> Evaluation:
        """With banks, multipliers and loads that run ahead as suits its walks, whatever was tried before."""
        for moves in (partial(run_ahead, far=True), fed_otherwise, *self._more_banks):
            best = self._best_of(moves(self.choices, best.params), best, more=True)
        return best

    def _flows(self, start: Evaluation) -> bool:
        """Whether walks fall in with each other already, and need no anchor for that."""
        walks = self.fitting.flowing(self.space.settings(start.params)) if IN_TURN in self.choices else {}
        return bool(walks) and all(start.params[name] == value for name, value in walks.items())

    def _with_best_banks(self, state: State) -> State:
        """Of inputs that follow each other: with each tensor in a bank of its own, if that is better. A port that
        serves early layers and late ones makes the first ones wait for the last ones of the input before."""
        if not self.evaluator.goal.weighs_frames or STRIPES not in state:
            return state
        self.worth.most += 2  # of many kernels, hardly more are tried
        return self._best_way([state, {**state, STRIPES: self.choices[STRIPES][0]}])

    def _best_way(self, ways: list[State]) -> State:
        """The best of a few states, the first one if none can be modelled."""
        self.worth.foresee(ways)
        found = [(rank_of(one), n) for n, way in enumerate(ways) if (one := self._evaluate(way))]
        return ways[min(found)[1] if found else 0]

    def _other_multipliers(self, state: Mapping[str, Value]) -> list[State]:
        kinds = self.choices.get(MULTIPLIERS, ())
        return [{**state, MULTIPLIERS: kind} for kind in kinds if kind != state.get(MULTIPLIERS)]

    def _grouped(self, kinds: list[State]) -> list[State]:
        """What does not fit may without loads that run ahead, or in groups: with as much memory in each as fits."""
        if BUDGET not in self.choices or any(self._fits(state) for state in kinds):
            return kinds
        late = loaded_late(self.choices, kinds)
        self.worth.most += len(late)
        groups = [{"fusion": GREEDY, BUDGET: budget} for budget in reversed(self.choices[BUDGET])]
        for ways in (late, *([self._within(state | group) for state in kinds] for group in groups)):
            if any(self._fits(state) for state in ways[-1:]):
                return ways
        return kinds

    def _fits(self, state: State) -> bool:
        return (found := self._evaluate(state)) is not None and rank_of(found)[0] <= 0

    def _adders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for op in self.leading for kind in self.fitting.adders(op)))

    def _built(self, kind: str) -> State:
        return {name: kind for name in self.choices if name.startswith(f"{BUILT}.") and kind in self.choices[name]}

    def _best_of(self, moves: _Ways, best: Evaluation, then: Iterable[_Ways] = (), *, more: bool = False) -> Evaluation:
        self.worth.foresee(now := list(moves), best, then, more=more)
        for state in now:
            if self._is_enough(best):
                break
            self.worth.most += more
            found = self._evaluate(state, best)
            best = found if found is not None and rank_of(found) < rank_of(best) else best
        return best

    def _is_enough(self, best: Evaluation) -> bool:
        return best.feasible and best.values[0] <= self.enough

    def _by_sides(self, best: Evaluation) -> Iterator[State]:
        return favoured(self.choices, best.params, self._sides)

    @cached_property
    def _sides(self) -> list[frozenset[str]]:
        return sides_of(self.graph, self.leading)[: self.worth.most // _OF_SETTINGS]

    # -- moves

    def _padded(self, best: Evaluation) -> Iterator[State]:
        """Dims as they are, or padded for all that may be used, or for what operators were left of it."""
        plain = {name: sizes[0] for name, sizes in self.choices.items() if name.startswith("pad.")}
        yield {**best.params, **plain}
        for whole in dict.fromkeys((self.evaluator.may_use, best.figures.resources)):
            yield {**best.params, **self._sizes(best.params, Allowance(whole))}
        yield {**best.params, **self._smooth}
        for name in plain:
            yield from ({**best.params, name: more} for more in self.choices[name] if more != best.params[name])

    @property
    def _smooth(self) -> State:
        """Paddings for lanes of any number; none where a model has too many kernels for them to be searched."""
        return {name: by for name, by in self.fitting.smooth.items() if by in self.choices.get(name, ())}

    @cached_property
    def _even(self) -> dict[str, Sequence[Value]]:
        """The few paddings of each dim that leave it the most divisors, as far as they are open."""
        known = self.fitting.even.items()
        open_to = {name: [by for by in few if by in self.choices.get(name, ())] for name, few in known}
        return {name: few for name, few in open_to.items() if few}

    def _sizes(self, state: Mapping[str, Value], allowance: Allowance) -> State:
        most = None if self.kernels <= _FEW_KERNELS else _PADDINGS_OF_MANY
        found = self.fitting.padding(self.space.settings(state), allowance, most)
        return {name: size for name, size in found.items() if size in self.choices.get(name, ())}

    def _smaller(self, best: Evaluation) -> Iterator[State]:
        """Less of the limits, for whom the fastest is not the best."""
        if best.goal.objectives[0] not in ("latency", "throughput"):
            yield from ({**best.params, SHARE: share} for share in self.choices[SHARE])

    # -- what a state is worth

    def _within(self, state: Mapping[str, Value]) -> State:
        """With what the user fixed as it is fixed."""
        return {name: v if v in self.choices[name] else self.choices[name][0] for name, v in state.items()}

    def _all(self, states: Sequence[State]) -> list[Evaluation]:
        """Those that can be laid out; the second process evaluates some meanwhile."""
        self.worth.foresee(states)
        return [found for state in states if (found := self._evaluate(state)) is not None]
