"""How the command line shows runs: tables, one-line summaries, and the live view of `penstock watch`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.services.api.answers.schemas import Best, Chosen, RunDetail, RunEstimate, RunOut, StepOut
from penstock.services.step_kinds import EXPLORE

_STYLES = {
    "succeeded": "green",
    "running": "cyan",
    "failed": "red",
    "failing": "red",
    "cancelled": "yellow",
    "cancelling": "yellow",
    "queued": "default",
    "paused": "yellow",
    "blocked": "bright_black",
}
_SIGNS = {"succeeded": "✓", "failed": "✗", "cancelled": "–", "running": "▸", "queued": "…", "blocked": "·"}


def state_text(state: str) -> Text:
    return Text(state, style=_STYLES.get(state, "default"))


def seconds_text(seconds: float) -> str:
    """12 s, 3 min 20 s, 2 h 05 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def lasted(start: datetime | None, end: datetime | None) -> str:
    if start is None:
        return ""
    return seconds_text(((end or datetime.now(UTC)) - start).total_seconds())


def best_text(run: RunOut) -> str:
    """The chosen design, before that the best trial, with where its figures come from; a dash while there is none."""
    return _chosen_text(run.chosen) if run.chosen else _trial_text(run.best) if run.best else "–"


def _chosen_text(chosen: Chosen) -> str:
    latency = f"{chosen.latency_us:,.2f} µs [{chosen.evidence}]"
    if chosen.resource_share is None:
        return latency
    return f"{latency}, {chosen.resource_share:.1%} of the platform's limit [{chosen.share_evidence}]"


def _trial_text(best: Best) -> str:
    parts: list[str] = []
    if best.latency_us is not None:
        parts.append(f"{best.latency_us:,.2f} µs")
    elif best.latency is not None:
        parts.append(f"{best.latency:,.0f} cycles")
    if best.evidence == "simulated":  # a simulation measures no area
        parts = [f"{part} [{best.evidence}]" for part in parts]
    if best.resource_share is not None:
        parts.append(f"{best.resource_share:.1%} of the platform's limit")
    return f"{', '.join(parts)} [{'modelled' if best.evidence == 'simulated' else best.evidence}]"


def trials_text(run: RunOut) -> str:
    progress = run.progress
    failed = f", {progress.trials_failed} failed" if progress.trials_failed else ""
    return f"{progress.trials_done}/{progress.trials_total}{failed}"


def runs_table(runs: Sequence[RunOut]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("RUN", "STATE", "MODEL", "PLATFORM", "TRIALS", "BEST", "AGE"):
        table.add_column(column, no_wrap=column in ("RUN", "STATE"), overflow="fold")
    now = datetime.now(UTC)
    for run in runs:
        table.add_row(
            run.id,
            state_text("paused" if run.paused and run.state in ("queued", "running") else run.state),
            Text(run.name),
            Text(str(run.options.get("platform", ""))),
            trials_text(run),
            Text(best_text(run)),
            seconds_text((now - run.created_at).total_seconds()),
        )
    return table


def live_view(run: RunDetail, note: str = "") -> RenderableType:
    """The whole state of a run on a few lines, redrawn in place."""
    table = Table.grid(padding=(0, 2))
    for step in run.steps:
        table.add_row(*_step_row(step))
        if step.kind == EXPLORE:
            table.add_row(Text(""), Text("trials"), _trials_bar(run), Text(best_text(run)))
    head = Text.assemble((run.name, "bold"), "  ", run.id, "  ", state_text(run.state))
    lines: list[RenderableType] = [head, table]
    if run.estimate is not None:
        lines.append(Text(ending_text(run.estimate), style="bright_black"))
    if note or run.waiting_for:
        lines.append(Text(note or run.waiting_for, style="yellow"))
    return Group(*lines)


def change_lines(before: RunDetail | None, after: RunDetail) -> list[str]:
    """What changed between two looks, a line each: the view for logs and pipes."""
    old = {step.key: step for step in before.steps} if before else {}
    lines: list[str] = []
    for step in after.steps:
        known = old.get(step.key)
        if step.state in ("blocked", "queued"):
            continue
        if known and (known.state, known.attempt) == (step.state, step.attempt):
            if step.state == "running" and step.progress_text and step.progress_text != known.progress_text:
                lines.append(f"{step.key}: {step.progress_text}")
            continue
        attempt = f" (attempt {step.attempt} of {step.max_attempts})" if step.attempt > 1 else ""
        why = f": {step.error.what}" if step.error else ""
        lines.append(f"{step.key}: {step.state}{attempt}{why}")
    done = after.progress.trials_done
    if done and (before is None or before.progress.trials_done != done):
        lines.append(f"trials: {trials_text(after)}, best {best_text(after)}")
    if after.estimate is not None and (before is None or before.estimate is None):
        lines.append(ending_text(after.estimate))
    if before is None or before.state != after.state:
        lines.append(f"run {after.id}: {after.state}")
    if after.waiting_for and (before is None or before.waiting_for != after.waiting_for):
        lines.append(after.waiting_for)
    return lines


def ending_text(estimate: RunEstimate) -> str:
    """ends at about 14:32, in 3 min 20 s (12 trials a minute; …)."""
    left = seconds_text((estimate.end - datetime.now(UTC)).total_seconds())
    return f"ends at about {estimate.end.astimezone():%H:%M}, in {left} ({estimate.basis})"


def error_line(run: RunDetail) -> str:
    """The error of a run on one line, in the words of whatever failed."""
    error = run.error
    if error is None:
        return ""
    parts = [f"{error.where}: {error.what}" if error.where else error.what]
    if error.limit:
        parts.append(f"({error.limit})")
    if error.hint:
        parts.append(f"- {error.hint}")
    return "\n".join([" ".join(parts), *error.others])


def _step_row(step: StepOut) -> tuple[RenderableType, ...]:
    style = _STYLES.get(step.state, "default")
    detail = step.progress_text or ""
    if step.attempt > 1:
        detail += f" (attempt {step.attempt} of {step.max_attempts})"
    if step.reused:
        detail += " (already known)"
    return (
        Text(_SIGNS.get(step.state, "?"), style=style),
        Text(step.key),
        Text(f"{step.state:<10}{lasted(step.started_at, step.finished_at)}", style=style),
        Text(detail.strip()),
    )


def _trials_bar(run: RunDetail) -> RenderableType:
    progress = run.progress
    grid = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, progress.trials_total), completed=progress.trials_done, width=24)
    grid.add_row(bar, Text(trials_text(run)))
    return grid
