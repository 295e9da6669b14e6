"""Templates filled with the documents of the API: every function takes plain records and returns HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from penstock.web.changed_source import ChangedSource, SourceForm
from penstock.web.compare_view import view_comparison
from penstock.web.course_view import Fall
from penstock.web.courses import Courses
from penstock.web.design_view import MOST_ROWS, shown_rows, view_design, view_kernel
from penstock.web.event_lines import event_lines
from penstock.web.files_view import view_files
from penstock.web.form_view import view_form
from penstock.web.kernel_view import view_kernel_run
from penstock.web.measurements_view import view_profiles
from penstock.web.mesh_view import view_mesh
from penstock.web.over_time import EndedTrialView, draw_distribution, draw_history, draw_work
from penstock.web.parallel import draw_parallel
from penstock.web.run_view import OptionLabels, view_head, view_run
from penstock.web.rungs_view import view_rungs
from penstock.web.runs_view import FILTERS, RunQuery, view_runs
from penstock.web.search_view import ObjectiveAxis, ObjectiveViews, axis_names
from penstock.web.service_view import state_of_token, view_queues
from penstock.web.slices import Sampled, draw_slices, pair_table, varying
from penstock.web.steps_view import StepKinds, step_rows
from penstock.web.templating import environment
from penstock.web.text import Document
from penstock.web.trial_view import view_trial
from penstock.web.trials_view import STATES, KnownTrials, view_trials
from penstock.web.what_if_view import ChangeField, fields_of, view_what_if


class EvidenceLook(Protocol):
    """What a label says of one kind of evidence; whoever fills the pages knows all kinds."""

    @property
    def meaning(self) -> str: ...
    @property
    def look(self) -> str: ...


EvidenceKinds = Mapping[Any, EvidenceLook]


@dataclass(frozen=True)
class PageFrame:
    """What every page is given: what evidence there is, the state of the service, whether people sign in, the time."""

    evidence_kinds: EvidenceKinds
    service: Document
    has_login: bool
    now: datetime


def render_runs(
    frame: PageFrame,
    runs: Sequence[Document],
    *,
    courses: Mapping[str, Sequence[Fall]],
    asked: RunQuery,
    next_cursor: str | None,
    platforms: Sequence[str],
    tags: Sequence[str] = (),
    views: Sequence[Document] = (),
) -> str:
    """The list of runs. A course is where the best value of a run's search fell."""
    return _page(
        frame,
        "runs.html",
        rows=view_runs(runs, courses, frame.now),
        asked=asked,
        tabs=[(name, asked.address(state=name)) for name in FILTERS],
        here=asked.address(cursor=asked.cursor),
        newest=asked.address() if asked.cursor else "",
        older=asked.address(cursor=next_cursor) if next_cursor else "",
        is_everything=asked.is_everything,
        platforms=platforms,
        tags=tags,
        views=views,
    )


def render_run(
    frame: PageFrame,
    run: Document,
    *,
    option_labels: OptionLabels,
    step_kinds: StepKinds,
    trials: KnownTrials,
    artifacts: Sequence[Document],
    last_news: str | None,
) -> str:
    """One run."""
    view = view_run(
        run,
        trials=trials,
        artifacts=artifacts,
        last_news=last_news,
        service=frame.service,
        option_labels=option_labels,
        step_kinds=step_kinds,
        now=frame.now,
    )
    return _page(frame, "run.html", view=view)


def render_log(
    frame: PageFrame, run: Document, *, step_kinds: StepKinds, artifacts: Sequence[Document], events: Sequence[Document]
) -> str:
    """What happened to a run, and its files."""
    return _page(
        frame,
        "log.html",
        head=view_head(run, "/log", frame.now),
        steps=step_rows(run, step_kinds, frame.now),
        files=view_files(artifacts),
        events=event_lines(events),
    )


def render_trials(
    frame: PageFrame, run: Document, trials: KnownTrials, objectives: ObjectiveViews, *, refused: str
) -> str:
    """The trials of a run. `refused` says what of the conditions could not be read."""
    table = view_trials(trials)
    drawn = axis_names(trials.query.axes or run["options"].get("objectives") or (), objectives)
    return _page(
        frame,
        "trials.html",
        head=view_head(run, "/trials", frame.now),
        table=table,
        parallel=draw_parallel(trials),
        plot=trials.drawn.plot,
        axes=[*drawn, ""][:3],
        objectives={name: one.axis for name, one in objectives.items()},
        states=STATES,
        refused=refused,
    )


def render_slices(
    frame: PageFrame,
    run: Document,
    sample: Sequence[Sampled],
    count: int,
    axis: ObjectiveAxis,
    across: str,
    down: str,
) -> str:
    """What parameters do to an objective, of a sample of the trials that keep their limits."""
    names = list(varying(sample)) if len(sample) > 1 else []
    if not (across in names and down in names) and len(names) > 1:
        across, down = names[0], names[1]
    return _page(
        frame,
        "slices.html",
        head=view_head(run, "/trials", frame.now),
        slices=draw_slices(sample, axis) if len(sample) > 1 else (),
        pair=pair_table(sample, across, down, axis) if len(names) > 1 else None,
        names=names,
        across=across,
        down=down,
        title=axis.title,
        count=count,
        sampled=len(sample),
    )


def render_over_time(
    frame: PageFrame,
    run: Document,
    ended: Sequence[EndedTrialView],
    count: int,
    axis: ObjectiveAxis,
    names: Mapping[str, str],
    of: str,
) -> str:
    """The trials that ended: the value of each, how they are spread, and when they were worked on."""
    return _page(
        frame,
        "over_time.html",
        head=view_head(run, "/trials", frame.now),
        history=draw_history(ended, axis),
        distribution=draw_distribution(ended, axis),
        work=draw_work(ended),
        names=tuple(names.items()),
        of=of,
        count=count,
        drawn=len(ended),
    )


def render_trial(
    frame: PageFrame,
    run: Document,
    trial: Document,
    *,
    model: Document | None,
    front: Sequence[int],
    objectives: ObjectiveViews,
) -> str:
    """One trial."""
    view = view_trial(trial, model, front, run["options"].get("objectives") or (), objectives)
    return _page(frame, "trial.html", head=view_head(run, "/trials", frame.now), view=view)


def render_design(
    frame: PageFrame,
    run: Document,
    report: Document | None,
    *,
    kernel: str,
    code: Mapping[str, str],
    resource: str,
    missing: str = "",
    question: Document | None = None,
    mesh: Document | None = None,
) -> str:
    """The chosen design, from its report; a report of another release may lack what is drawn."""
    head = view_head(run, "/design", frame.now)
    view = opened = None
    fields: tuple[ChangeField, ...] = ()
    title = "No design is known" if head.over else "Not chosen yet"
    missing = missing or (
        "This run ended without a report." if head.over else "The design is shown once the run is over."
    )
    if report is not None:
        try:
            view = view_design(report, resource)
            opened = view_kernel(report, view.flow, kernel, code) if kernel else None
            fields = fields_of(report, view.flow, kernel, question) if opened else ()
        except (KeyError, TypeError) as error:
            view, title = None, "The report cannot be drawn"
            missing = f"It is of another release of Penstock and lacks {error}. The report itself can be read."
    return _page(
        frame,
        "design.html",
        head=head,
        view=view,
        kernel=opened,
        asked_kernel=kernel,
        asked=view_what_if(question),
        fields=fields,
        rows=shown_rows(view.flow.nodes) if view else (),
        edges=sorted(view.flow.edges, key=lambda edge: -(edge.fill or 0))[:MOST_ROWS] if view else (),
        missing=missing,
        missing_title=title,
        mesh=view_mesh(mesh) if mesh else None,
    )


def render_kernel_run(
    frame: PageFrame,
    run: Document,
    record: Document,
    *,
    form: SourceForm | None = None,
    locked: str = "",
    asked: ChangedSource | None = None,
) -> str:
    """A run of a C++ kernel: the source before and after, with all that limits it, and what another one comes to."""
    head = view_head(run, "/design", frame.now)
    try:
        view = view_kernel_run(record)
    except (KeyError, TypeError, ValueError) as error:
        return render_design(
            frame, run, None, kernel="", code={}, resource="",
            missing=f"Its record is of another release of Penstock: {error}. The file itself can be read.",
        )  # fmt: skip
    flow = (view.after or view.before).flow
    return _page(frame, "kernel.html", head=head, view=view, flow=flow, form=form, locked=locked, asked=asked)


def render_form(
    frame: PageFrame,
    properties: Mapping[str, Document],
    labels: OptionLabels,
    helps: Mapping[str, str],
    platforms: Sequence[Document],
    *,
    zoo: Mapping[str, Sequence[tuple[str, str]]],
    takes_python: bool,
    again: Document | None,
    kernel_options: Sequence[str] = (),
) -> str:
    """The form that starts a run."""
    view = view_form(properties, labels, helps, platforms, again)
    return _page(frame, "submit.html", view=view, zoo=zoo, takes_python=takes_python, kernel_options=kernel_options)


def render_compare(
    frame: PageFrame,
    *,
    runs: Sequence[Document] = (),
    models: Sequence[Document | None] = (),
    labels: OptionLabels | None = None,
    courses: Courses | None = None,
    sent: Sequence[str] = (),
    recent: Sequence[Document] = (),
    refused: str = "",
) -> str:
    """Runs side by side; without any, what there is to choose from."""
    view = view_comparison(runs, models, labels or {}, sent) if runs else None
    return _page(frame, "compare.html", view=view, courses=courses, recent=recent, refused=refused)


def render_storage(
    frame: PageFrame, *, stored: Sequence[Document], largest: Sequence[Document], quotas: Document
) -> str:
    """What takes room."""
    limits = [(name, limit) for name, limit in quotas.items() if limit is not None]
    return _page(frame, "storage.html", stored=stored, largest=largest, limits=limits)


def render_machine(frame: PageFrame, checks: Sequence[Document]) -> str:
    """What the machine has and lacks, the problems first."""
    order = ("problem", "limited", "ok")
    return _page(frame, "machine.html", checks=sorted(checks, key=lambda check: order.index(check["state"])))


def render_service(
    frame: PageFrame,
    *,
    licences: Sequence[Document],
    ages: Sequence[Document],
    is_admin: bool,
    tokens: Sequence[Document],
    audit: Sequence[Document],
) -> str:
    """The service's own state."""
    return _page(
        frame,
        "service_page.html",
        queues=view_queues(frame.service["queues"], ages, frame.now),
        licences=licences,
        is_admin=is_admin,
        tokens=[dict(token) | {"state": state_of_token(token, frame.now)} for token in tokens],
        audit=audit,
    )


def render_measurements(frame: PageFrame, profiles: Document, differences: Sequence[Document]) -> str:
    """What all runs share."""
    return _page(
        frame, "measurements.html", profiles=profiles, kept=view_profiles(profiles), rungs=view_rungs(differences)
    )


def render_problem(document: Mapping[str, Any]) -> str:
    """An error as a page: what, where, which limit, what to do next."""
    return _page(None, "problem.html", problem=document)


def render_login(*, failure: str, next_page: str) -> str:
    """The form that takes a token."""
    return _page(None, "login.html", failure=failure, next_page=next_page)


def _page(frame: PageFrame | None, template: str, **values: Any) -> str:
    around: dict[str, Any] = {"service": None, "has_login": False}
    if frame is not None:
        around = {
            "evidence_kinds": frame.evidence_kinds, "service": frame.service, "has_login": frame.has_login,
        }  # fmt: skip
    return environment().get_template(template).render(**around, **values)
