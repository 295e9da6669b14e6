"""The table of trials: figures with their evidence, and a column for each parameter that tells trials apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from penstock.web import text
from penstock.web.text import Document
from penstock.web.trial_drawings import TrialDrawings

PAGE_ROWS = 50
MOST_COLUMNS = 12
USUAL_COLUMNS = 5
STATES: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "complete": ("complete",),
    "outside the limits": ("infeasible",),
    "failed": ("failed",),
    "not over": ("running", "queued", "blocked"),
}


@dataclass(frozen=True)
class Column:
    """A figure that trials report: its heading and how its values read."""

    name: str
    heading: str
    show: Callable[[float], str]


FIGURES = (
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
class TrialQuery:
    """What is asked of the table; all of it stands in the address."""

    sort: str = ""
    falling: bool = False
    state: str = "all"
    where: str = ""
    columns: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    """The objectives that the trade-off is drawn over; those of the run where none is named."""
    page: int = 0

    def address(self, **changes: object) -> str:
        """The same with changes; anything but another page begins at the first one."""
        changed = replace(self, **({"page": 0} | changes))  # pyright: ignore[reportArgumentType]
        return "?" + urlencode([*changed.kept, *(("axis", name) for name in changed.axes)])

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What is asked of the table, but for the drawing."""
        asked = {
            "sort": self.sort, "falling": "1" if self.falling else "", "where": self.where,
            "state": self.state if self.state != "all" else "", "columns": ",".join(self.columns),
            "page": self.page or "",
        }  # fmt: skip
        return [(name, str(value)) for name, value in asked.items() if value]

    def by(self, name: str) -> str:
        """As a click on a heading asks: by this column, and the other way round by another click."""
        return self.address(sort=name, falling=self.sort == name and not self.falling)


@dataclass(frozen=True)
class KnownTrials:
    """What a page is given of a run's trials, however many they are."""

    drawn: TrialDrawings = field(default_factory=TrialDrawings)
    rows: Sequence[Document] = ()
    """One page of them in full, in the order that was asked for."""
    model: Document | None = None
    """The chosen trial, or the best so far, in full."""
    query: TrialQuery = field(default_factory=TrialQuery)
    matching: int = 0
    """How many pass what the query asks for."""
    conditions: Sequence[tuple[str, str, str]] = ()
    """What the query asks of figures and parameters: name, relation, value."""
    kept: frozenset[int] | None = None
    """The trials that pass; None where all do."""
    beside: Sequence[Document] = ()
    """Every so many of all trials, whatever is asked for."""


@dataclass(frozen=True)
class Heading:
    name: str
    text: str
    address: str
    sorted: str
    """ascending, descending or none, as the table says to those who hear it."""
    numeric: bool


@dataclass(frozen=True)
class TrialCell:
    text: str
    differs: bool = False


@dataclass(frozen=True)
class TrialLine:
    number: int
    state: str
    style: str
    chosen: bool
    figures: tuple[str, ...]
    params: tuple[TrialCell, ...]
    evidence: str
    lasted: str
    note: str
    log_tail: str


@dataclass(frozen=True)
class TrialTable:
    first: Heading
    figures: tuple[Heading, ...]
    params: tuple[Heading, ...]
    rows: tuple[TrialLine, ...]
    constants: tuple[tuple[str, str], ...]
    others: tuple[str, ...]
    """Parameters that vary and have no column."""
    evidence: str
    """Of every figure in the table; empty where it differs from trial to trial."""
    model_trial: int | None
    """The chosen trial, or the best so far: values unlike its own stand out."""
    total: int
    matching: int
    query: TrialQuery
    before: str
    after: str
    range: str


def scarcest(figures: Document) -> str:
    """The resource that a design needs most of, as a share of its limit; empty if the shares are not known."""
    shares = shares_of(figures)
    return max(shares, key=lambda name: shares[name], default="").upper()


def shares_of(figures: Document) -> dict[str, float]:
    """Of each resource the share of its limit."""
    return {
        name.removesuffix("_share"): value
        for name, value in figures.items()
        if name.endswith("_share") and name not in _NO_RESOURCE and isinstance(value, int | float)
    }


def view_trials(known: KnownTrials) -> TrialTable:
    """One page of the table."""
    trials, model, query = known.rows, known.model, known.query
    figures = [column for column in FIGURES if _is_worth_a_column(column, trials)]
    constants, varying = split_params([*trials, *([model] if model else [])])
    shown = tuple(name for name in query.columns if name in varying)[:MOST_COLUMNS] or usual_columns(trials, varying)
    evidence = {trial["evidence"] for trial in trials if trial["evidence"]}
    first = query.page * PAGE_ROWS
    return TrialTable(
        first=_heading(query, "", "Trial", numeric=True),
        figures=tuple(_heading(query, column.name, column.heading, numeric=True) for column in figures),
        params=tuple(_heading(query, name, name, numeric=False) for name in shown),
        rows=tuple(_row(trial, figures, shown, model) for trial in trials),
        constants=tuple(sorted(constants.items())),
        others=tuple(name for name in varying if name not in shown),
        evidence=evidence.pop() if len(evidence) == 1 else "",
        model_trial=model["number"] if model else None,
        total=known.drawn.total,
        matching=known.matching,
        query=query,
        before=query.address(page=query.page - 1) if query.page else "",
        after=query.address(page=query.page + 1) if first + len(trials) < known.matching else "",
        range=f"{first + 1:,}–{first + len(trials):,} of {known.matching:,}" if trials else "none",
    )


def _is_worth_a_column(column: Column, trials: Sequence[Document]) -> bool:
    """The first ones always; others where they tell trials apart."""
    shown = {_cell(column, trial["figures"].get(column.name)) for trial in trials} - {""}
    return len(shown) > 1 or (bool(shown) and column.name in ("latency_us", "resource_share"))


def usual_columns(trials: Sequence[Document], varying: Sequence[str]) -> tuple[str, ...]:
    """Those of the whole design before those of single layers, and those with many values before those with few."""

    def place(name: str) -> tuple[bool, int, str]:
        return "." in name, -len({repr(trial["params"].get(name)) for trial in trials}), name

    return tuple(sorted(varying, key=place)[:USUAL_COLUMNS])


def split_params(trials: Sequence[Document]) -> tuple[dict[str, str], list[str]]:
    """Parameters that are the same in every trial, and the names of the others."""
    filled = [trial["params"] for trial in trials if trial["params"]]
    names = sorted({name for params in filled for name in params})
    values = {name: {repr(params.get(name)) for params in filled} for name in names}
    if len(filled) < 2:
        return {}, names
    constants = {name: shown_value(filled[0].get(name)) for name in names if len(values[name]) == 1}
    return constants, [name for name in names if name not in constants]


def why_not(trial: Document) -> str:
    """Why an infeasible trial is none, in a few words; empty for others."""
    figures = trial["figures"]
    if trial["state"] != "infeasible":
        return ""
    share = figures.get("resource_share")
    if not isinstance(share, int | float):
        return "outside the limits of the run"
    if share > 1:
        return f"does not fit: {text.percent(share)} of its {scarcest(figures)} limit".rstrip()
    if isinstance(dies := figures.get("die_share"), int | float) and dies > 1:
        return "its tasks cannot be divided among the dies"
    if isinstance(routing := figures.get("routing_share"), int | float) and routing > 1:
        return "a pipeline or a token is too large to be routed"
    return "outside the limits of the run"


def word_of_state(state: str) -> str:
    return {"infeasible": "outside", "blocked": "to come", "queued": "to come"}.get(state, state)


def style_of_trial(state: str) -> str:
    looks = {"complete": "succeeded", "infeasible": "cancelled", "blocked": "queued"}
    return looks.get(state, state)


def shown_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "×".join(shown_value(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return str(value)


def _heading(query: TrialQuery, name: str, words: str, *, numeric: bool) -> Heading:
    order = "none" if query.sort != name else "descending" if query.falling else "ascending"
    return Heading(name, words, query.by(name), order, numeric)


def _row(trial: Document, figures: Sequence[Column], shown: Sequence[str], model: Document | None) -> TrialLine:
    error = trial["error"]
    notes = [f"attempt {trial['attempt']}"] if trial["attempt"] > 1 else []
    notes += [f"setting of {trial['origin']}"] if trial["origin"] else []
    notes += [error["what"] if error else why_not(trial)]
    return TrialLine(
        number=trial["number"],
        state=word_of_state(trial["state"]),
        style=style_of_trial(trial["state"]),
        chosen=trial["chosen"],
        figures=tuple(_cell(column, trial["figures"].get(column.name)) for column in figures),
        params=tuple(_param(trial, name, model) for name in shown),
        evidence=trial["evidence"] or "",
        lasted="" if trial["seconds"] is None else text.duration(trial["seconds"]),
        note="; ".join(note for note in notes if note),
        log_tail=error["log_tail"] if error else "",
    )


def _param(trial: Document, name: str, model: Document | None) -> TrialCell:
    if name not in trial["params"]:
        return TrialCell("")
    value = trial["params"][name]
    return TrialCell(shown_value(value), model is not None and model["params"].get(name) != value)


def _cell(column: Column, value: object) -> str:
    return column.show(value) if isinstance(value, int | float) else ""
