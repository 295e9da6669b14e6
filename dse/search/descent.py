"""The search over walks: one kernel's walk is changed at a time, for as long as the modelled design gets faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule import implementations, load_library
from penstock.dse.evaluation.evaluate import Evaluation, Evaluator
from penstock.dse.lanes.neighbours import follow
from penstock.dse.lanes.pacing import NO_PADDING, Fitter, Sizes
from penstock.dse.lanes.walks import KernelWalk, walks_of
from penstock.dse.search.built import with_memories

_ROUNDS = 3
_MOST_MODELLED = 600
_TRIES = 6
"""How often the LUTs that operators may take are lowered, until the rest of the design fits beside them."""
_IN_MEMORIES = 0.03
"""Of all LUTs, what building memories of something else may save."""
_HURRY = (1, 2, 4, 8)
_SLOWNESS = (0.5, 0.7, 1.0, 1.4, 2.0)
_FLOAT_BITS = 32


@dataclass(frozen=True)
class Fitted:
    """The best design that was found, and how many were modelled on the way."""

    evaluation: Evaluation
    walks: Mapping[str, KernelWalk]
    modelled: int


def fit(evaluator: Evaluator, rounds: int = _ROUNDS) -> Fitted:
    """The fastest design within the platform's limits. The same evaluator always gives the same one."""
    return _Descent(evaluator).run(rounds)


DescentState = tuple[Mapping[str, KernelWalk], Sizes]


class _Descent:
    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator, self.limits = evaluator, evaluator.platform.limits
        library = load_library(evaluator.platform.operators, evaluator.clock_mhz)
        self.graph = evaluator.space.graph
        self.fitter = Fitter(self.graph, evaluator.platform.name, evaluator.clock_mhz, library)
        self.adders = implementations(library, "arith.addf", _FLOAT_BITS)
        self.modelled = 0
        self.seen: dict[object, Evaluation | None] = {}
        self.allowed: dict[str, Resources] = {}
        """What operators might take of the device in each design that fits."""

    def run(self, rounds: int) -> Fitted:
        """From the best start, or from every one where there is so little to decide that it costs nothing."""
        starts = self._starts()
        found = [self._descend(*start, rounds) for start in (starts if len(self.fitter.heavy) == 1 else starts[:1])]
        best, state = min(found, key=lambda one: _rank(one[0]))
        return Fitted(best, state[0], self.modelled)

    def _descend(self, best: Evaluation, state: DescentState, rounds: int) -> tuple[Evaluation, DescentState]:
        for op in self.fitter.heavy:
            anchored = [(follow({**state[0], op.layer: w}, op, self.graph), state[1]) for w in self._anchors(op, state)]
            best, state = self._best_of(anchored, best, state)
        for _ in range(rounds):
            before = best
            for moves in (self._small_moves, self._other_walks, self._small_moves):
                for op in self.fitter.heavy:
                    best, state = self._best_of(list(moves(op, state)), best, state)
            sizes = (NO_PADDING, *(self.fitter.padding(state[0], limits) for limits in self._limits(best)))
            best, state = self._best_of([(state[0], padded) for padded in sizes], best, state)
            if best is before:
                break
        return best, state

    def _anchors(self, op: TensorOp, state: DescentState) -> list[KernelWalk]:
        """Walks with one slow dim, for all other kernels to fall in with."""
        here = state[0][op.layer]
        return [replace(here, outer=w.outer, fine=w.fine) for w in self._walks_of(op) if len(w.outer) == 1]

    def _best_of(
        self, moves: Sequence[DescentState], best: Evaluation, state: DescentState
    ) -> tuple[Evaluation, DescentState]:
        for other in moves:
            evaluation = self.evaluate(other)
            if evaluation is not None and _rank(evaluation) < _rank(best):
                best, state = evaluation, other
        return best, state

    def _limits(self, best: Evaluation) -> tuple[Resources, ...]:
        """All that the device has, and what of it the operators of the best design were left."""
        used = self.allowed.get(best.design.digest(), self.limits)
        return tuple(dict.fromkeys((self.limits, used)))

    def _starts(self) -> list[tuple[Evaluation, DescentState]]:
        """The simplest walks, with each kind of adder, as they are and padded; the fastest first."""
        found: list[tuple[Evaluation, DescentState]] = []
        kinds = [(adders, False, False) for adders in self.adders]
        kinds += [(self.adders[-1], True, compact) for compact in (False, True) if len(self.adders) > 1]
        for adders, mixed, compact in kinds:
            plain = KernelWalk((), adders=adders, mixed=mixed, compact=compact)
            firsts = {op.layer: next(self._walks_of(op)) for op in self.fitter.heavy}
            walks = {layer: replace(plain, outer=walk.outer, frame=walk.frame) for layer, walk in firsts.items()}
            with suppress(PenstockError):  # one that does not even fit without padding is passed over
                for sizes in (NO_PADDING, self.fitter.padding(walks, self.limits)):
                    evaluation = self.evaluate((walks, sizes))
                    if evaluation is not None:
                        found.append((evaluation, (walks, sizes)))
        if not found:
            raise PenstockError(
                code="nothing-fits", what="not even the simplest walk fits", where=self.evaluator.program.name,
                limit=f"{self.limits.dsp} DSPs", hint="take a larger budget",
            )  # fmt: skip
        return sorted(found, key=lambda one: _rank(one[0]))

    def _other_walks(self, op: TensorOp, state: DescentState) -> Iterator[DescentState]:
        """Another order for one kernel: alone, and with all around it in step."""
        walks, sizes = state
        for walk in self._walks_of(op):
            alone = {**walks, op.layer: replace(walks[op.layer], outer=walk.outer, fine=walk.fine)}
            yield alone, sizes
            yield follow(alone, op, self.graph), sizes

    def _walks_of(self, op: TensorOp) -> Iterator[KernelWalk]:
        return walks_of(op, self.fitter.frames.get(op.layer, ()))

    def _small_moves(self, op: TensorOp, state: DescentState) -> Iterator[DescentState]:
        """The same order with other lanes."""
        walks, sizes = state
        here = walks[op.layer]
        changed = [replace(here, whole_tokens=not here.whole_tokens), replace(here, fine=not here.fine)]
        changed += [
            replace(here, compact=not here.compact),
            *(replace(here, hurry=n) for n in _HURRY if n != here.hurry),
        ]
        if len(walks) > 1:
            changed += [replace(here, slowness=s) for s in _SLOWNESS if s != here.slowness]
            changed += [replace(here, adders=a) for a in self.adders if a != here.adders]
            changed += [replace(here, mixed=not here.mixed)] if len(self.adders) > 1 else []
        yield from (({**walks, op.layer: walk}, sizes) for walk in changed)

    def evaluate(self, state: DescentState) -> Evaluation | None:
        """The fastest design of a state that fits with everything around its operators; None if none does."""
        walks, sizes = state
        key = (tuple(sorted(walks.items(), key=lambda item: item[0])), tuple(sorted(sizes.items())))
        if key not in self.seen and self.modelled < _MOST_MODELLED:
            self.seen[key] = self._evaluate(state)
        return self.seen.get(key)

    def _evaluate(self, state: DescentState) -> Evaluation | None:
        allowed = self.limits
        for _ in range(_TRIES):
            evaluation = self._modelled(state, allowed)
            if evaluation is None or evaluation.feasible:
                return evaluation
            mixed = any(walk.mixed for walk in state[0].values()) and evaluation.binding_resource == "lut"
            lowered = _lowered(allowed, evaluation, self.limits, used_up=mixed)
            if mixed:
                again = self._modelled(state, allowed, lowered.lut)
                if again is not None and again.feasible:
                    return again
            allowed = lowered
        return None

    def _modelled(self, state: DescentState, allowed: Resources, luts: int | None = None) -> Evaluation | None:
        """A state's design with operators within a part of the device; None if there is none."""
        try:
            evaluation = self.evaluator.evaluate_design(self.fitter.design(state[0], allowed, state[1], luts))
        except PenstockError as error:
            if error.code not in ("nothing-fits", "tile-does-not-divide"):
                raise
            return None
        self.modelled += 1
        others = max(share for name, share in evaluation.shares.items() if name != "lut")
        if 1 < evaluation.shares["lut"] <= 1 + _IN_MEMORIES and others <= 1:
            evaluation = with_memories(self.evaluator, evaluation) or evaluation
        if evaluation.feasible:
            self.allowed[evaluation.design.digest()] = allowed
        return evaluation


def _lowered(allowed: Resources, evaluation: Evaluation, limits: Resources, *, used_up: bool) -> Resources:
    """Less for operators, by as much as the whole design is over the device.

    Mixed operators use up what LUTs they are allowed, so by as many fewer as there are too many.
    """
    over = max(evaluation.shares[name] for name in ("lut", "ff", "bram18", "uram"))
    dsp_over = evaluation.figures.resources.dsp - limits.dsp
    if used_up:
        luts = allowed.lut - (evaluation.figures.resources.lut - limits.lut)
        return replace(allowed, lut=luts, dsp=allowed.dsp - max(0, dsp_over))
    return replace(
        allowed,
        lut=int(min(allowed.lut, evaluation.figures.resources.lut) / over * 0.99) if over > 1 else allowed.lut,
        dsp=allowed.dsp - max(0, dsp_over),
    )


def _rank(evaluation: Evaluation) -> tuple[float, float]:
    return evaluation.figures.latency, max(evaluation.shares.values())
