"""The table of trials: figures with their evidence, and only the parameters that differ between trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from penstock.web import text
from penstock.web.text import Document

SORTS = ("number", "latency", "resources")


@dataclass(frozen=True)
class Column:
    """A figure that trials report: its heading and how its values read."""

    name: str
    heading: str
    show: Callable[[float], str]


_COLUMNS = (
    Column("latency_us", "Latency", text.microseconds),
    Column("latency_cycles", "Cycles", text.quantity),
    Column("interval_cycles", "Interval", text.quantity),
    Column("resource_share", "Share of limit", text.percent),
    Column("energy_uj", "Energy, µJ", text.quantity),
    Column("traffic_bytes", "Traffic", lambda value: text.size(round(value))),
    Column("bandwidth_share", "Bandwidth", text.percent),
)
_NO_RESOURCE = ("resource_share", "bandwidth_share", "die_share", "routing_share")


@dataclass(frozen=True)
class KnownTrials:
    """What a page is given of a run's trials, however many they are."""

    marks: Sequence[Document] = ()
    """All of them, each with no more than a drawing needs."""
    rows: Sequence[Document] = ()
    """One page of them in full, in the order that was asked for."""
    model: Document | None = None
    """The chosen trial, or the best so far, in full."""
    sort: str = "number"
    cursor: str | None = None
    next_cursor: str | None = None


@dataclass(frozen=True)
class TrialLine:
    number: int
    state: str
    style: str
    chosen: bool
    cells: tuple[str, ...]
    evidence: str
    params: str
    lasted: str
    note: str
    log_tail: str


@dataclass(frozen=True)
class TrialTable:
    columns: tuple[str, ...]
    rows: tuple[TrialLine, ...]
    constants: tuple[tuple[str, str], ...]
    evidence: str
    """Of every figure in the table; empty where it differs from trial to trial."""
    model_trial: int | None
    """The chosen trial, or the best so far: of the others only those parameters are shown that differ from its."""
    total: int
    sort: str
    here: str
    """The query of this page, and of the one after it if there is one."""
    after: str


def scarcest(figures: Document) -> str:
    """The resource that a design needs most of, as a share of its limit; empty if the shares are not known."""
    shares = {
        name.removesuffix("_share"): value
        for name, value in figures.items()
        if name.endswith("_share") and name not in _NO_RESOURCE and isinstance(value, int | float)
    }
    return max(shares, key=lambda name: shares[name], default="").upper()


def view_trials(known: KnownTrials) -> TrialTable:
    """One page of the table."""
    trials, model = known.rows, known.model
    columns = [column for column in _COLUMNS if any(column.name in trial["figures"] for trial in trials)]
    constants, varying = _split_params([*trials, *([model] if model else [])])
    evidence = {trial["evidence"] for trial in trials if trial["evidence"]}
    return TrialTable(
        columns=tuple(column.heading for column in columns),
        rows=tuple(_row(trial, columns, _unlike(trial, model, varying)) for trial in trials),
        constants=tuple(sorted(constants.items())),
        evidence=evidence.pop() if len(evidence) == 1 else "",
        model_trial=model["number"] if model else None,
        total=len(known.marks),
        sort=known.sort,
        here=_query(known.sort, known.cursor),
        after=_query(known.sort, known.next_cursor) if known.next_cursor else "",
    )


def _query(sort: str, cursor: str | None) -> str:
    return urlencode({"sort": sort} | ({"cursor": cursor} if cursor else {}))


def _unlike(trial: Document, model: Document | None, varying: Sequence[str]) -> list[str]:
    """The parameters worth showing beside a trial: many trials differ from the best in one or two."""
    if model is None or trial["number"] == model["number"]:
        return list(varying)
    return [name for name in varying if trial["params"].get(name) != model["params"].get(name)]


def _split_params(trials: Sequence[Document]) -> tuple[dict[str, str], list[str]]:
    """Parameters that are the same in every trial, and the names of the others."""
    filled = [trial["params"] for trial in trials if trial["params"]]
    names = sorted({name for params in filled for name in params})
    values = {name: {repr(params.get(name)) for params in filled} for name in names}
    if len(filled) < 2:
        return {}, names
    constants = {name: _shown(filled[0].get(name)) for name in names if len(values[name]) == 1}
    return constants, [name for name in names if name not in constants]


def _row(trial: Document, columns: Sequence[Column], shown: Sequence[str]) -> TrialLine:
    params, figures, error = trial["params"], trial["figures"], trial["error"]
    note = error["what"] if error else ""
    if trial["state"] == "infeasible":
        name, share = scarcest(figures), figures.get("resource_share")
        fits = f"{text.percent(share)} of its {name} limit" if isinstance(share, int | float) else "is too small"
        beyond = isinstance(share, int | float) and share <= 1
        note = "outside the limits of the run" if beyond else f"does not fit: {fits}".rstrip()
        if beyond and isinstance(dies := figures.get("die_share"), int | float) and dies > 1:
            note = "its tasks cannot be divided among the dies"
        if beyond and isinstance(routing := figures.get("routing_share"), int | float) and routing > 1:
            note = "a pipeline or a token is too large to be routed"
    if trial["origin"]:
        note = f"setting of {trial['origin']}" + (f"; {note}" if note else "")
    if trial["attempt"] > 1:
        note = f"attempt {trial['attempt']}" + (f"; {note}" if note else "")
    return TrialLine(
        number=trial["number"],
        state=trial["state"],
        style={"complete": "succeeded", "infeasible": "cancelled", "blocked": "queued"}.get(
            trial["state"], trial["state"]
        ),
        chosen=trial["chosen"],
        cells=tuple(_cell(column, figures.get(column.name)) for column in columns),
        evidence=trial["evidence"] or "",
        params="  ".join(f"{name}={_shown(params[name])}" for name in shown if name in params),
        lasted="" if trial["seconds"] is None else text.duration(trial["seconds"]),
        note=note,
        log_tail=error["log_tail"] if error else "",
    )


def _cell(column: Column, value: object) -> str:
    return column.show(value) if isinstance(value, int | float) else ""


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return "×".join(_shown(part) for part in value)
    return str(value)
