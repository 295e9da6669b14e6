"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from penstock.compiler.search_space import SpaceInfo
from penstock.services.api.answers.health import HealthOut, WorkerHealth
from penstock.services.api.answers.labels import ViewOut
from penstock.services.api.answers.schemas import (
    ArtifactOut,
    EventOut,
    MeOut,
    ModelOut,
    PlatformOut,
    RunDetail,
    RunOut,
    TrialDetail,
    TrialFront,
    TrialOut,
)
from penstock.services.api.answers.upkeep import (
    Collected,
    DeliveryOut,
    FreedOut,
    WebhookOut,
    WebhookSecret,
)
from penstock.services.client import calls
from penstock.services.client.calls import LONGEST_POLL_SECONDS, ApiCall
from penstock.services.client.downloads import CHUNK, Incoming
from penstock.services.client.errors import ServiceError, refusal, unreachable
from penstock.services.client.event_lines import SILENCE_SECONDS, EventReader
from penstock.services.client.finding import find_service, headers_for, timeout_of
from penstock.services.client.limits import LimitFound, compare_limits, limits_of
from penstock.services.client.model_source import ModelSource, opened
from penstock.services.client.patience import RETRIES, Patience, pause_before_retry
from penstock.services.client.states import chosen_trial_of, is_over, run_id, started

_BETWEEN_LOOKS = 0.2
"""Seconds: a trial takes a second or so."""

D = TypeVar("D", bound=BaseModel)


class Client:
    """One service. Requests that may be repeated safely are, a few times, while it is busy for a moment.

    Without a `url` it is the one of PENSTOCK_URL, else one's own `penstock up`; likewise `token` and PENSTOCK_TOKEN.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url, token = find_service(url, token)
        # No proxies from the environment: the service is near, and a token must not go astray.
        self._http = httpx.Client(
            base_url=self.url, headers=headers_for(token), transport=transport, trust_env=False,
        )  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # the service
    def health(self) -> HealthOut:
        return self._ask(calls.health())

    def me(self) -> MeOut:
        return self._ask(calls.me())

    def login_link(self) -> str:
        """An address that signs a browser in, once."""
        return self._ask(calls.login_link()).url

    def platforms(self) -> list[PlatformOut]:
        return self._ask(calls.platforms()).items

    # models
    def submit_model(self, source: ModelSource | str, name: str = "", *, key: str = "") -> ModelOut:
        """Hand a model in. `key` makes a repetition, from this process or another, the same submission."""
        known = ModelSource.parse(source) if isinstance(source, str) else source
        return self._ask(calls.submit_model(known, name, key))

    def model(self, model: str) -> ModelOut:
        return self._ask(calls.model(model))

    def models(self) -> Iterator[ModelOut]:
        """The newest first; pages are fetched as they are needed."""
        cursor: str | None = None
        while True:
            page = self._ask(calls.models(cursor))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def check_model(self, model: str, *, key: str = "", **options: Any) -> RunDetail:
        """A run that says what is known of a model before any search."""
        return self._ask(calls.check_model(model, options, key))

    def make_array(self, model: str, *, key: str = "", **asked: Any) -> RunDetail:
        """A run that makes an array of cores for a Triton kernel: `shapes`, and `platform`, `mesh` or `description`."""
        return self._ask(calls.make_array(model, asked, key))

    # runs
    def submit_run(self, model: str, *, key: str = "", **options: Any) -> RunDetail:
        return self._ask(calls.submit_run(model, options, key))

    def submit(self, model: ModelSource | str, *, key: str = "", **options: Any) -> RunDetail:
        """Hand a model in and start a run of it."""
        return self.submit_run(self.submit_model(model, key=key and f"{key}-model").id, key=key, **options)

    def run(self, run: str, *, wait: int = 0, after: int | None = None) -> RunDetail:
        """One run. With `wait`, answers when it ended, or when something happened after event `after`."""
        return self._ask(calls.run(run, wait, after))

    def runs(self, *, limit: int = 20, state: str = "", model: str = "", tag: str = "") -> Iterator[RunOut]:
        """The newest first; pages are fetched as they are needed."""
        cursor: str | None = None
        left = limit
        while left > 0:
            page = self._ask(calls.runs(left, state, model, tag, cursor))
            yield from page.items
            left -= len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    def wait(self, run: RunOut | str, *, timeout: float | None = None) -> RunDetail:
        """The run at its end. Short outages are borne; StillRunningError when the time is over."""
        patience, found = Patience(timeout), started(run) or self.run(run_id(run))
        while not is_over(found):
            longest = patience.left(found.id, found.state, LONGEST_POLL_SECONDS)
            try:
                found = self.run(found.id, wait=longest, after=found.last_event_id)
                patience.answered()
            except ServiceError as error:
                time.sleep(patience.bear(error))
        return found

    def events(self, run: str, *, after: int = 0) -> Iterator[EventOut]:
        """What happens to a run, as it happens, to its end; taken up again after a break without a gap."""
        reader, patience = EventReader(after), Patience()
        while not reader.ended:
            try:
                for event in self._stream(run, reader):
                    patience.answered()
                    yield event
            except ServiceError as error:
                time.sleep(patience.bear(error))

    def cancel(self, run: str) -> RunDetail:
        return self._ask(calls.change(run, "cancel"))

    def pause(self, run: str) -> RunDetail:
        return self._ask(calls.change(run, "pause"))

    def resume(self, run: str) -> RunDetail:
        return self._ask(calls.change(run, "resume"))

    def pin(self, run: str) -> RunDetail:
        """Keep it: until it is unpinned it is neither deleted nor collected."""
        return self._ask(calls.change(run, "pin"))

    def unpin(self, run: str) -> RunDetail:
        return self._ask(calls.change(run, "unpin"))

    def label(self, run: str, *, tags: Sequence[str] | None = None, notes: str | None = None) -> RunDetail:
        """Write tags and notes beside a run, in place of those that are there; None leaves them."""
        return self._ask(calls.label(run, tags, notes))

    def views(self) -> list[ViewOut]:
        """One's own saved views of the list of runs."""
        return self._ask(calls.views()).items

    def save_view(self, name: str, **query: str) -> ViewOut:
        """Keep what is asked of the list of runs: state, words, platform, owner, tag."""
        return self._ask(calls.save_view(name, query))

    def delete_view(self, view: str) -> None:
        self._ask(calls.delete_view(view))

    def delete_run(self, run: str) -> FreedOut:
        """Remove a run that is over, with its trials and files; ConflictError if it is going or pinned."""
        return self._ask(calls.delete_run(run))

    def delete_model(self, model: str) -> None:
        """Remove a model of which there are no runs."""
        self._ask(calls.delete_model(model))

    def collect(self, older_than_days: float, *, dry_run: bool = False) -> Collected:
        """Remove some of what is older, or say what would go; for administrators. Again, while `more` is true."""
        return self._ask(calls.collect(older_than_days, dry_run))

    def extend(self, run: str, trials: int, *, key: str = "") -> RunDetail:
        return self._ask(calls.extend(run, trials, key))

    # what a run found
    def trials(self, run: str) -> Iterator[TrialOut]:
        """Every trial, by number; pages are fetched as they are needed."""
        cursor: str | None = None
        while True:
            page = self._ask(calls.trials(run, cursor))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def trial(self, run: str, number: int) -> TrialDetail:
        return self._ask(calls.trial(run, number))

    def space(self, run: str) -> SpaceInfo:
        """What can be decided in a run's search, once it has begun: waited for."""
        while True:
            try:
                return self._ask(calls.space(run))
            except ServiceError as error:
                if error.code != "no-search-yet" or is_over(self.run(run)):
                    raise
            time.sleep(_BETWEEN_LOOKS)

    def ask(self, run: str, trials: int, *, key: str = "") -> list[int]:
        """The numbers of further trials whose settings you tell. The run chooses when all of them have ended."""
        return (self._ask(calls.ask(run, trials, key))).trials

    def tell(self, run: str, number: int, params: Mapping[str, Any] | None) -> TrialDetail:
        """Tell the setting of a trial that you asked for, and wait for what it costs; with None the search decides."""
        found = self._ask(calls.tell(run, number, params))
        while found.state in ("blocked", "queued", "running"):
            time.sleep(_BETWEEN_LOOKS)
            found = self.trial(run, number)
        return found

    def replay(self, run: str, number: int) -> RunDetail:
        """The run that evaluates the trial again."""
        return self._ask(calls.replay(run, number))

    def front(self, run: str, objectives: Sequence[str] = ()) -> TrialFront:
        """The trials that no other one beats."""
        return self._ask(calls.front(run, objectives))

    def compare_limits(self, run: RunDetail, limits: Sequence[str] | None = None) -> list[LimitFound]:
        """The run's limits, or others, each against the chosen design."""
        wanted = limits_of(run, limits)
        return compare_limits(run, self.trial(run.id, chosen_trial_of(run)), wanted) if wanted else []

    def artifacts(self, run: str) -> list[ArtifactOut]:
        return self._ask(calls.artifacts(run)).items

    def download(self, artifact: ArtifactOut, folder: Path | str) -> Path:
        """Fetches an artifact into `folder` under its own name: whole, with the right hash, or not at all."""
        incoming = Incoming(artifact, Path(folder))
        if incoming.is_there:
            return incoming.target
        with incoming:
            try:
                with self._http.stream("GET", artifact.url, timeout=timeout_of(30.0)) as response:
                    if not response.is_success:
                        response.read()
                        raise refusal(response)
                    for chunk in response.iter_bytes(CHUNK):
                        incoming.write(chunk)
            except httpx.HTTPError as error:
                raise unreachable(self.url, error) from error
            return incoming.keep()

    # workers
    def workers(self) -> list[WorkerHealth]:
        return self._ask(calls.workers()).items

    def drain_worker(self, name: str) -> None:
        """Have it end its steps, begin no others, and end; for administrators."""
        self._ask(calls.drain_worker(name))

    # webhooks
    def create_webhook(self, url: str, kinds: Sequence[str] = (), *, everybody: bool = False) -> WebhookSecret:
        """Have the ends of runs told to `url`. The secret is in this answer and in no other."""
        return self._ask(calls.create_webhook(url, kinds, everybody))

    def webhooks(self) -> list[WebhookOut]:
        return self._ask(calls.webhooks()).items

    def delete_webhook(self, webhook: str) -> None:
        self._ask(calls.delete_webhook(webhook))

    def rotate_webhook(self, webhook: str) -> WebhookSecret:
        """Another secret; for a day messages carry signatures of both."""
        return self._ask(calls.rotate_webhook(webhook))

    def test_webhook(self, webhook: str) -> None:
        """Have a test message sent."""
        self._ask(calls.test_webhook(webhook))

    def deliveries(self, webhook: str) -> list[DeliveryOut]:
        """The newest of what was told, and how it went."""
        return self._ask(calls.deliveries(webhook)).items

    def _stream(self, run: str, reader: EventReader) -> Iterator[EventOut]:
        try:
            with self._http.stream(
                "GET", calls.events_path(run), headers=reader.headers, timeout=timeout_of(SILENCE_SECONDS)
            ) as response:
                if not response.is_success:
                    response.read()
                    raise refusal(response)
                reader.ended = response.status_code == 204
                for line in response.iter_lines():
                    event = reader.feed(line)
                    if event is not None:
                        yield event
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error

    def _ask(self, call: ApiCall[D]) -> D:
        retries = RETRIES
        with ExitStack() as stack:
            sent = [(name, stack.enter_context(opened(path))) for name, path in call.files]
            files = [("file", (given, file, "application/octet-stream")) for given, file in sent] or None
            while True:
                try:
                    response = self._http.request(
                        call.method, call.path, params=dict(call.params), json=call.body, data=dict(call.form) or None,
                        files=files, headers=dict(call.headers), timeout=timeout_of(call.seconds),
                    )  # fmt: skip
                except httpx.HTTPError as error:
                    raise unreachable(self.url, error) from error
                if response.is_success or response.status_code in call.accept:
                    return call.read(response)
                time.sleep(pause_before_retry(response, retries))
                retries -= 1
