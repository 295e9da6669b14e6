"""One trial: its figures beside the chosen one's, its setting, its design, and why it was not taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web import text
from penstock.web.search_view import ObjectiveAxis, ObjectiveViews, axes_of, known_axis
from penstock.web.text import Document
from penstock.web.trials_view import FIGURES, shares_of, shown_value, style_of_trial, why_not, word_of_state

MOST_KERNELS = 400


@dataclass(frozen=True)
class FigureRow:
    """A figure of this trial and of the one that it is compared with."""

    name: str
    own: str
    other: str
    ratio: str


@dataclass(frozen=True)
class ParamRow:
    name: str
    own: str
    other: str
    differs: bool


@dataclass(frozen=True)
class KernelRow:
    """How a design walks one kernel."""

    name: str
    tile: str
    lanes: str
    order: str
    weights: str


@dataclass(frozen=True)
class TrialView:
    trial: Document
    state: str
    style: str
    verdict: tuple[str, ...]
    figures: tuple[FigureRow, ...]
    shares: tuple[tuple[str, str, float, bool], ...]
    """Of each resource its name, its share of the limit in words and in percent, and whether that is too much."""
    share_evidence: str
    params: tuple[ParamRow, ...]
    same: tuple[ParamRow, ...]
    kernels: tuple[KernelRow, ...]
    source: str
    """Of a C++ kernel: the source that was tried."""
    changed: tuple[str, ...]
    other: int | None
    other_is: str
    lasted: str


def view_trial(
    trial: Document, model: Document | None, front: Sequence[int], asked: Sequence[str], objectives: ObjectiveViews
) -> TrialView:
    """`model` is the chosen trial or the best so far; `front` the trials that no other one beats."""
    other = model if model is not None and model["number"] != trial["number"] else None
    params = _params(trial, other)
    design: Mapping[str, Any] = trial["design"] or {}
    kernels: Mapping[str, Any] = design.get("kernels") or {}
    axes = [known_axis(axis, [trial]) for axis in axes_of(asked, objectives)]
    return TrialView(
        trial=trial,
        state=word_of_state(trial["state"]),
        style=style_of_trial(trial["state"]),
        verdict=tuple(_verdict(trial, other, front, axes)),
        figures=_figures(trial, other),
        shares=tuple(
            (name.upper(), text.percent(share), min(100.0, 100 * share), share > 1)
            for name, share in sorted(shares_of(trial["figures"]).items(), key=lambda item: -item[1])
        ),
        share_evidence=text.of_area(trial["evidence"] or ""),
        params=tuple(row for row in params if row.differs) if other else params,
        same=tuple(row for row in params if not row.differs) if other else (),
        kernels=tuple(_kernel(name, kernels[name]) for name in list(kernels)[:MOST_KERNELS]),
        source=text.shown_code(str(design.get("source") or "")),
        changed=tuple(map(str, design.get("changes") or ())),
        other=other["number"] if other else None,
        other_is="" if other is None else "chosen" if other["chosen"] else "best so far",
        lasted="" if trial["seconds"] is None else text.duration(trial["seconds"]),
    )


def _verdict(trial: Document, other: Document | None, front: Sequence[int], axes: Sequence[ObjectiveAxis]) -> list[str]:
    """Why it was taken, or why it was not: what the figures say, in sentences."""
    if trial["error"]:
        return [f"It failed: {trial['error']['what']}."]
    if trial["state"] not in ("complete", "infeasible"):
        return ["It has no figures yet."]
    if trial["chosen"]:
        return ["It was chosen."]
    if trial["state"] == "infeasible":
        reason = why_not(trial)
        return [f"It cannot be taken: {reason}."]
    said = ["No other trial beats it in every objective." if trial["number"] in front else "Another trial beats it."]
    if other is None:
        return [*said, "It is the best so far."] if not front or trial["number"] == front[0] else said
    name = f"trial {other['number']}, the {'chosen one' if other['chosen'] else 'best so far'}"
    for axis in axes:
        own, its = trial["figures"].get(axis.figure), other["figures"].get(axis.figure)
        if isinstance(own, int | float) and isinstance(its, int | float):
            said.append(f"Its {axis.title} is {axis.show(own)}, that of {name}, {axis.show(its)}{_than(own, its)}.")
    return said


def _than(own: float, its: float) -> str:
    if own == its or not its:
        return ": the same" if own == its else ""
    return f": {text.percent(abs(own / its - 1))} {'more' if own > its else 'less'}"


def _figures(trial: Document, other: Document | None) -> tuple[FigureRow, ...]:
    rows: list[FigureRow] = []
    for column in FIGURES:
        own, its = trial["figures"].get(column.name), other["figures"].get(column.name) if other else None
        if not isinstance(own, int | float):
            continue
        known = isinstance(its, int | float)
        ratio = f"× {own / its:.2f}" if known and its else ""
        rows.append(FigureRow(column.heading, column.show(own), column.show(its) if known else "", ratio))
    return tuple(rows)


def _params(trial: Document, other: Document | None) -> tuple[ParamRow, ...]:
    """All that either of them has; those of the whole design before those of single layers."""
    its: Mapping[str, Any] = other["params"] if other else {}
    names = sorted({*trial["params"], *its}, key=lambda name: ("." in name, name))
    return tuple(
        ParamRow(
            name,
            shown_value(trial["params"][name]) if name in trial["params"] else "–",
            shown_value(its[name]) if name in its else "–",
            trial["params"].get(name) != its.get(name),
        )
        for name in names
    )


def _kernel(name: str, kernel: Mapping[str, Any]) -> KernelRow:
    def sizes(field: str) -> str:
        return " × ".join(map(str, kernel.get(field) or ()))

    lanes = 1
    for factor in kernel.get("unroll") or ():
        lanes *= int(factor)
    order = " → ".join(map(str, kernel.get("order") or ()))
    return KernelRow(name, sizes("tile"), f"{lanes:,}", order, str(kernel.get("weights") or ""))
