"""/v1/runs/{id}/events: what happens to a run, as server-sent events that can be taken up again anywhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from penstock.db.repositories.events import WrittenEvent
from penstock.db.schema.states import RUN_TERMINAL
from penstock.services.api.answers.documents import event_out
from penstock.services.api.answers.params import PROBLEMS, RunId
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import EventList
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.hub import BATCH, News
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.runs import find_run

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=PROBLEMS)

KEEP_ALIVE_SECONDS = 10.0
_RETRY_MILLISECONDS = 2000
_LARGEST_ID = 2**63 - 1


class EventResponse(StreamingResponse):
    """A stream that gives its place back however it ends, also if its client was gone before the first byte."""

    def __init__(self, content: AsyncIterator[str], leave: Callable[[], None], **fields: Any) -> None:
        super().__init__(content, **fields)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


@router.get(
    "/{run_id}/events",
    response_class=StreamingResponse,
    summary="Follow a run",
    responses={
        200: {
            "description": "events as they happen, after those that happened before; `end` is the last one",
            "content": {"text/event-stream": {}},
        },
        204: {"description": "the run is over and every event was sent: do not come back"},
    },
)
async def stream_events(
    run_id: RunId,
    context: Ctx,
    caller: Caller,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID", description="go on after this event", json_schema_extra={"pattern": "^[0-9]{1,18}$"}
        ),
    ] = None,
    after: Annotated[int | None, Query(ge=0, le=_LARGEST_ID, description="the same for a first request")] = None,
) -> Response:
    """Server-sent events: each has an `id`, and `data` with kind, time and details as JSON."""
    last = _event_id(last_event_id) if last_event_id is not None else after or 0
    events, over = await run_in_threadpool(_read, context, run_id, last)
    if over and not events and last:
        return Response(status_code=204)
    leave = context.hub.enter(run_id, events[-1].id if events else last, caller.owner)
    stream = _stream(context, run_id, last, events, over)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventResponse(stream, leave, media_type="text/event-stream", headers=headers)


@router.get("/{run_id}/history", summary="What happened to a run")
def list_events(
    run_id: RunId,
    context: Ctx,
    caller: Caller,
    after: Annotated[int, Query(ge=0, le=_LARGEST_ID, description="only events newer than this one")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> EventList:
    """The same events as a list, the oldest first."""
    with context.database.begin() as tx:
        find_run(tx, run_id)
        return EventList(items=[event_out(event) for event in tx.events.after(run_id, after, limit)])


async def _stream(
    context: Context, run_id: str, last: int, events: Sequence[WrittenEvent], over: bool
) -> AsyncIterator[str]:
    """Sends what is known, then waits for more; a run's state is read with its events, so none is missed."""
    yield f"retry: {_RETRY_MILLISECONDS}\n\n"
    news = _as_news(events, last, over)
    while True:
        if news.text:
            last = news.last
            yield news.text
        if news.over:
            yield "event: end\ndata: {}\n\n"
            return
        if not (news.text or news.more) and not await context.hub.newer(run_id, last, KEEP_ALIVE_SECONDS):
            if context.hub.is_closed:
                return
            yield ": still here\n\n"
        kept = None if news.more else context.hub.news(run_id, last)
        news = kept or _as_news(*await run_in_threadpool(_after, context, run_id, last))


def _as_news(events: Sequence[WrittenEvent], last: int, over: bool) -> News:
    """What the database said, as a stream sends it; a full batch is not the end."""
    text = "".join(message(event) for event in events)
    full = len(events) >= BATCH
    return News(text, events[-1].id if events else last, over and not full, more=full)


def _after(context: Context, run_id: str, last: int) -> tuple[Sequence[WrittenEvent], int, bool]:
    try:
        events, over = _read(context, run_id, last)
    except RefusedError:  # it was deleted meanwhile
        events, over = [], True
    return events, last, over


def _read(context: Context, run_id: str, last: int) -> tuple[Sequence[WrittenEvent], bool]:
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        events = tx.events.since({run_id: last}, BATCH)
    # the run may have ended between the two questions: its last event says so itself
    return events, events[-1].over if events else run.state in RUN_TERMINAL


def message(event: WrittenEvent) -> str:
    """An event as it goes out: the document of `event_out`, written without taking its data apart.

    Everything outside of ASCII is escaped, since some readers take more for the end of a line than the standard says.
    """
    data = event.data if event.data.isascii() else json.dumps(json.loads(event.data))
    at = event.at.isoformat().replace("+00:00", "Z")
    return (
        f'id: {event.id}\ndata: {{"id":{event.id},"kind":{_quoted(event.kind)},"at":"{at}","data":{data},'
        f'"actor":{_quoted(event.actor)}}}\n\n'
    )


@lru_cache(maxsize=1000)
def _quoted(word: str | None) -> str:
    return json.dumps(word)


def _event_id(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text[:20]) > _LARGEST_ID:
        raise Problem(
            "bad-event-id",
            f"'{text[:40]}' is not an id of an event",
            where="header Last-Event-ID",
            hint="send the id of the last event that you saw, or nothing",
        )
    return int(text)
