"""The client for programs that do other things while they wait: the same methods, to be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
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


class AsyncClient:
    """As `Client`, in an event loop."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.url, token = find_service(url, token)
        # No proxies from the environment: the service is near, and a token must not go astray.
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=headers_for(token), transport=transport, trust_env=False,
        )  # fmt: skip

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    # the service
    async def health(self) -> HealthOut:
        return await self._ask(calls.health())

    async def me(self) -> MeOut:
        return await self._ask(calls.me())

    async def login_link(self) -> str:
        """An address that signs a browser in, once."""
        return (await self._ask(calls.login_link())).url

    async def platforms(self) -> list[PlatformOut]:
        return (await self._ask(calls.platforms())).items

    # models
    async def submit_model(self, source: ModelSource | str, name: str = "", *, key: str = "") -> ModelOut:
        """Hand a model in. `key` makes a repetition, from this process or another, the same submission."""
        known = ModelSource.parse(source) if isinstance(source, str) else source
        return await self._ask(calls.submit_model(known, name, key))

    async def model(self, model: str) -> ModelOut:
        return await self._ask(calls.model(model))

    async def models(self) -> AsyncIterator[ModelOut]:
        """The newest first; pages are fetched as they are needed."""
        cursor: str | None = None
        while True:
            page = await self._ask(calls.models(cursor))
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def check_model(self, model: str, *, key: str = "", **options: Any) -> RunDetail:
        """A run that says what is known of a model before any search."""
        return await self._ask(calls.check_model(model, options, key))

    async def make_array(self, model: str, *, key: str = "", **asked: Any) -> RunDetail:
        """A run that makes an array of cores for a Triton kernel: `shapes`, and `platform`, `mesh` or `description`."""
        return await self._ask(calls.make_array(model, asked, key))

    # runs
    async def submit_run(self, model: str, *, key: str = "", **options: Any) -> RunDetail:
        return await self._ask(calls.submit_run(model, options, key))

    async def submit(self, model: ModelSource | str, *, key: str = "", **options: Any) -> RunDetail:
        """Hand a model in and start a run of it."""
        return await self.submit_run(
            (await self.submit_model(model, key=key and f"{key}-model")).id, key=key, **options
        )

    async def run(self, run: str, *, wait: int = 0, after: int | None = None) -> RunDetail:
        """One run. With `wait`, answers when it ended, or when something happened after event `after`."""
        return await self._ask(calls.run(run, wait, after))

    async def runs(self, *, limit: int = 20, state: str = "", model: str = "", tag: str = "") -> AsyncIterator[RunOut]:
        """The newest first; pages are fetched as they are needed."""
        cursor: str | None = None
        left = limit
        while left > 0:
            page = await self._ask(calls.runs(left, state, model, tag, cursor))
            for item in page.items:
                yield item
            left -= len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def wait(self, run: RunOut | str, *, timeout: float | None = None) -> RunDetail:
        """The run at its end. Short outages are borne; StillRunningError when the time is over."""
        patience, found = Patience(timeout), started(run) or await self.run(run_id(run))
        while not is_over(found):
            longest = patience.left(found.id, found.state, LONGEST_POLL_SECONDS)
            try:
                found = await self.run(found.id, wait=longest, after=found.last_event_id)
                patience.answered()
            except ServiceError as error:
                await asyncio.sleep(patience.bear(error))
        return found

    async def events(self, run: str, *, after: int = 0) -> AsyncIterator[EventOut]:
        """What happens to a run, as it happens, to its end; taken up again after a break without a gap."""
        reader, patience = EventReader(after), Patience()
        while not reader.ended:
            try:
                async for event in self._stream(run, reader):
                    patience.answered()
                    yield event
            except ServiceError as error:
                await asyncio.sleep(patience.bear(error))

    async def cancel(self, run: str) -> RunDetail:
        return await self._ask(calls.change(run, "cancel"))

    async def pause(self, run: str) -> RunDetail:
        return await self._ask(calls.change(run, "pause"))

    async def resume(self, run: str) -> RunDetail:
        return await self._ask(calls.change(run, "resume"))

    async def pin(self, run: str) -> RunDetail:
        """Keep it: until it is unpinned it is neither deleted nor collected."""
        return await self._ask(calls.change(run, "pin"))

    async def unpin(self, run: str) -> RunDetail:
        return await self._ask(calls.change(run, "unpin"))

    async def label(self, run: str, *, tags: Sequence[str] | None = None, notes: str | None = None) -> RunDetail:
        """Write tags and notes beside a run, in place of those that are there; None leaves them."""
        return await self._ask(calls.label(run, tags, notes))

    async def views(self) -> list[ViewOut]:
        """One's own saved views of the list of runs."""
        return (await self._ask(calls.views())).items

    async def save_view(self, name: str, **query: str) -> ViewOut:
        """Keep what is asked of the list of runs: state, words, platform, owner, tag."""
        return await self._ask(calls.save_view(name, query))

    async def delete_view(self, view: str) -> None:
        await self._ask(calls.delete_view(view))

    async def delete_run(self, run: str) -> FreedOut:
        """Remove a run that is over, with its trials and files; ConflictError if it is going or pinned."""
        return await self._ask(calls.delete_run(run))

    async def delete_model(self, model: str) -> None:
        """Remove a model of which there are no runs."""
        await self._ask(calls.delete_model(model))

    async def collect(self, older_than_days: float, *, dry_run: bool = False) -> Collected:
        """Remove some of what is older, or say what would go; for administrators. Again, while `more` is true."""
        return await self._ask(calls.collect(older_than_days, dry_run))

    async def extend(self, run: str, trials: int, *, key: str = "") -> RunDetail:
        return await self._ask(calls.extend(run, trials, key))

    # what a run found
    async def trials(self, run: str) -> AsyncIterator[TrialOut]:
        """Every trial, by number; pages are fetched as they are needed."""
        cursor: str | None = None
        while True:
            page = await self._ask(calls.trials(run, cursor))
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return

    async def trial(self, run: str, number: int) -> TrialDetail:
        return await self._ask(calls.trial(run, number))

    async def space(self, run: str) -> SpaceInfo:
        """What can be decided in a run's search, once it has begun: waited for."""
        while True:
            try:
                return await self._ask(calls.space(run))
            except ServiceError as error:
                if error.code != "no-search-yet" or is_over(await self.run(run)):
                    raise
            await asyncio.sleep(_BETWEEN_LOOKS)

    async def ask(self, run: str, trials: int, *, key: str = "") -> list[int]:
        """The numbers of further trials whose settings you tell. The run chooses when all of them have ended."""
        return (await self._ask(calls.ask(run, trials, key))).trials

    async def tell(self, run: str, number: int, params: Mapping[str, Any] | None) -> TrialDetail:
        """Tell the setting of a trial that you asked for, and wait for what it costs; with None the search decides."""
        found = await self._ask(calls.tell(run, number, params))
        while found.state in ("blocked", "queued", "running"):
            await asyncio.sleep(_BETWEEN_LOOKS)
            found = await self.trial(run, number)
        return found

    async def replay(self, run: str, number: int) -> RunDetail:
        """The run that evaluates the trial again."""
        return await self._ask(calls.replay(run, number))

    async def front(self, run: str, objectives: Sequence[str] = ()) -> TrialFront:
        """The trials that no other one beats."""
        return await self._ask(calls.front(run, objectives))

    async def compare_limits(self, run: RunDetail, limits: Sequence[str] | None = None) -> list[LimitFound]:
        """The run's limits, or others, each against the chosen design."""
        wanted = limits_of(run, limits)
        return compare_limits(run, await self.trial(run.id, chosen_trial_of(run)), wanted) if wanted else []

    async def artifacts(self, run: str) -> list[ArtifactOut]:
        return (await self._ask(calls.artifacts(run))).items

    async def download(self, artifact: ArtifactOut, folder: Path | str) -> Path:
        """Fetches an artifact into `folder` under its own name: whole, with the right hash, or not at all."""
        incoming = Incoming(artifact, Path(folder))
        if incoming.is_there:
            return incoming.target
        with incoming:
            try:
                async with self._http.stream("GET", artifact.url, timeout=timeout_of(30.0)) as response:
                    if not response.is_success:
                        await response.aread()
                        raise refusal(response)
                    async for chunk in response.aiter_bytes(CHUNK):
                        incoming.write(chunk)
            except httpx.HTTPError as error:
                raise unreachable(self.url, error) from error
            return incoming.keep()

    # workers
    async def workers(self) -> list[WorkerHealth]:
        return (await self._ask(calls.workers())).items

    async def drain_worker(self, name: str) -> None:
        """Have it end its steps, begin no others, and end; for administrators."""
        await self._ask(calls.drain_worker(name))

    # webhooks
    async def create_webhook(self, url: str, kinds: Sequence[str] = (), *, everybody: bool = False) -> WebhookSecret:
        """Have the ends of runs told to `url`. The secret is in this answer and in no other."""
        return await self._ask(calls.create_webhook(url, kinds, everybody))

    async def webhooks(self) -> list[WebhookOut]:
        return (await self._ask(calls.webhooks())).items

    async def delete_webhook(self, webhook: str) -> None:
        await self._ask(calls.delete_webhook(webhook))

    async def rotate_webhook(self, webhook: str) -> WebhookSecret:
        """Another secret; for a day messages carry signatures of both."""
        return await self._ask(calls.rotate_webhook(webhook))

    async def test_webhook(self, webhook: str) -> None:
        """Have a test message sent."""
        await self._ask(calls.test_webhook(webhook))

    async def deliveries(self, webhook: str) -> list[DeliveryOut]:
        """The newest of what was told, and how it went."""
        return (await self._ask(calls.deliveries(webhook))).items

    async def _stream(self, run: str, reader: EventReader) -> AsyncIterator[EventOut]:
        try:
            async with self._http.stream(
                "GET", calls.events_path(run), headers=reader.headers, timeout=timeout_of(SILENCE_SECONDS)
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise refusal(response)
                reader.ended = response.status_code == 204
                async for line in response.aiter_lines():
                    event = reader.feed(line)
                    if event is not None:
                        yield event
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error

    async def _ask(self, call: ApiCall[D]) -> D:
        retries = RETRIES
        with ExitStack() as stack:
            sent = [(name, stack.enter_context(opened(path))) for name, path in call.files]
            files = [("file", (given, file, "application/octet-stream")) for given, file in sent] or None
            while True:
                try:
                    response = await self._http.request(
                        call.method, call.path, params=dict(call.params), json=call.body, data=dict(call.form) or None,
                        files=files, headers=dict(call.headers), timeout=timeout_of(call.seconds),
                    )  # fmt: skip
                except httpx.HTTPError as error:
                    raise unreachable(self.url, error) from error
                if response.is_success or response.status_code in call.accept:
                    return call.read(response)
                await asyncio.sleep(pause_before_retry(response, retries))
                retries -= 1
