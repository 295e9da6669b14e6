"""Two to six runs side by side: what differs comes first, in figures, in what was asked for and in the setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.web import text
from penstock.web.runs_view import headline, shown_state, style_of
from penstock.web.steps_view import OVER
from penstock.web.text import Document
from penstock.web.trials_view import shown_value

LEAST, MOST = 2, 6


@dataclass(frozen=True)
class ComparedCell:
    text: str
    percent: float | None = None
    """Of the largest of its row."""
    best: bool = False
    evidence: str = ""


@dataclass(frozen=True)
class ComparedRow:
    name: str
    cells: tuple[ComparedCell, ...]

    @property
    def differs(self) -> bool:
        return len({cell.text for cell in self.cells}) > 1


@dataclass(frozen=True)
class ComparedPart:
    title: str
    differing: tuple[ComparedRow, ...]
    same: tuple[ComparedRow, ...]


@dataclass(frozen=True)
class ComparedRun:
    run: Document
    state: str
    style: str


@dataclass(frozen=True)
class ComparedRuns:
    runs: tuple[ComparedRun, ...]
    parts: tuple[ComparedPart, ...]
    warning: str
    """Why no figure is called the best, where that is so."""

    @property
    def is_going(self) -> bool:
        return any(one.run["state"] not in OVER for one in self.runs)

    @property
    def address(self) -> str:
        return "/compare?" + "&".join(f"run={one.run['id']}" for one in self.runs)


def view_comparison(
    runs: Sequence[Document],
    models: Sequence[Document | None],
    labels: Mapping[str, tuple[str, str]],
    sent: Sequence[str] = (),
) -> ComparedRuns:
    """`models` are the chosen trials of the runs, or the best so far; `sent` names the content that each was sent."""
    heads = [headline(run) for run in runs]
    evidence = {shown["evidence"] for shown, _ in heads if shown}
    warning = ""
    mixed = len({run["model"]["name"] for run in runs}) > 1
    if mixed:
        warning = "These runs are of different models: their figures stand side by side, and none is called the best."
    elif len(evidence) > 1:
        warning = "These latencies are of different evidence: they stand side by side, and none is called the best."
    figures = [
        _numbers("latency", [_of(s, "latency_us") for s, _ in heads], text.microseconds, _labels(heads), evidence),
        _numbers(
            "interval, cycles", [run["summary"].get("interval_cycles") for run in runs], text.quantity, _labels(heads),
            evidence,
        ),
        _numbers(
            "largest share of a limit", [_of(s, "resource_share") for s, _ in heads], text.percent,
            [share for _, share in heads], {share for _, share in heads if share},
        ),
        _numbers("above the bound, %", [run["summary"].get("gap_pct") for run in runs], text.quantity),
        _numbers("FIFO bits", [run["summary"].get("fifo_bits") for run in runs], text.quantity),
        *_trial_figures(models),
        _numbers("trials", [run["progress"]["trials_done"] for run in runs], text.quantity, better=False),
    ]  # fmt: skip
    if "models" in warning:
        figures = [ComparedRow(row.name, tuple(replace(cell, best=False) for cell in row.cells)) for row in figures]
    asked = {name: None for run in runs for name in run["options"]}
    names = [*(name for name in labels if name in asked), *(name for name in asked if name not in labels)]
    options = [
        _words(
            labels.get(name, (name, ""))[0], [run["options"].get(name) for run in runs], labels.get(name, ("", ""))[1]
        )
        for name in names
    ]
    params = {name: None for model in models if model for name in model["params"]}
    setting = [
        _words(name, [(model or {"params": {}})["params"].get(name) for model in models])
        for name in sorted(params, key=lambda name: ("." in name, name))
        if not mixed or sum(name in model["params"] for model in models if model) > 1
    ]
    first = [_words("model", [run["model"]["name"] for run in runs])]
    if sent and not mixed:  # one that was changed has the same name
        first.append(_words("as it was sent", sent))
    return ComparedRuns(
        runs=tuple(ComparedRun(run, shown_state(run), style_of(shown_state(run))) for run in runs),
        parts=tuple(
            ComparedPart(
                title,
                tuple(row for row in rows if row.differs),
                tuple(row for row in rows if not row.differs and any(cell.text != "–" for cell in row.cells)),
            )
            for title, rows in (
                ("Figures", figures),
                ("What was asked for", [*first, *options]),
                ("Setting of the best design", setting),
            )
        ),
        warning=warning,
    )  # fmt: skip


def _trial_figures(models: Sequence[Document | None]) -> list[ComparedRow]:
    """Of the trials, as the search had them."""
    rows: list[ComparedRow] = []
    for name, words, show in (
        ("energy_uj", "energy, µJ", text.quantity),
        ("lut_share", "LUT", text.percent),
        ("dsp_share", "DSP", text.percent),
        ("bram18_share", "BRAM18", text.percent),
        ("uram_share", "URAM", text.percent),
    ):
        values = [model["figures"].get(name) if model else None for model in models]
        kinds = [text.of_area(model["evidence"] or "") if model else "" for model in models]
        rows.append(_numbers(words, values, show, kinds, {kind for kind in kinds if kind}))
    return rows


def _of(shown: Document | None, name: str) -> object:
    return shown[name] if shown else None


def _labels(heads: Sequence[tuple[Document | None, str]]) -> list[str]:
    return [shown["evidence"] if shown else "" for shown, _ in heads]


def _numbers(
    name: str,
    values: Sequence[object],
    show: Callable[[float], str],
    kinds: Sequence[str] = (),
    evidence: set[str] | None = None,
    *,
    better: bool = True,
) -> ComparedRow:
    """The smallest is the best, where all are of one evidence."""
    known = [float(value) for value in values if isinstance(value, int | float)]
    most, least = max(known, default=0.0), min(known, default=0.0)
    ranked = better and len(known) > 1 and most > least and len(evidence or ()) < 2
    cells: list[ComparedCell] = []
    for index, value in enumerate(values):
        if not isinstance(value, int | float):
            cells.append(ComparedCell("–"))
            continue
        share = round(100 * value / most, 1) if most > 0 else None
        label = kinds[index] if index < len(kinds) else ""
        cells.append(ComparedCell(show(float(value)), share, ranked and value == least, label))
    return ComparedRow(name, tuple(cells))


def _words(name: str, values: Sequence[object], absent: str = "") -> ComparedRow:
    return ComparedRow(
        name, tuple(ComparedCell(absent or "–" if value in (None, []) else shown_value(value)) for value in values)
    )
