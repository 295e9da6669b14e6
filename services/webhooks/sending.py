"""Sends what is due, again and again until it arrives or a day and a half has passed.

The rows say what is due; whoever claims one has it for a minute. A sender that is killed has its attempt repeated under
the same id, so a receiver may see a message twice and never misses one.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from dataclasses import dataclass

import httpx

from penstock.db import Database
from penstock.db.database import is_transient
from penstock.db.schema.records import DueDelivery
from penstock.services.secret_key import load_key
from penstock.services.settings import Settings
from penstock.services.webhooks.signing import headers_of, secrets_at
from penstock.services.webhooks.targets import TargetRefusedError, resolve

log = logging.getLogger(__name__)

AGAIN_SECONDS = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
"""Between attempts, each a little more or less; after the last one it is given up."""
ATTEMPT_SECONDS = 20.0
_LOOK_SECONDS = 1.0
_AT_ONCE = 8
_GONE = 410


@dataclass(frozen=True)
class Answer:
    """How an attempt ended. Without a status nobody answered."""

    status: int | None
    problem: str = ""

    @property
    def arrived(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class WebhookSender:
    """A thread that sends until `stop`; any number of them may run in as many processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._database = Database(settings.require_database_url(), application="penstock webhooks", pool_size=2)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=2.0)  # an attempt that is cut off is repeated by whoever comes next
        self._database.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                sent = asyncio.run(send_due(self._database, self._settings))
            except Exception as error:
                if not is_transient(error):
                    log.exception("webhooks cannot be sent")
                sent = 0
            if sent == 0:
                self._stopping.wait(_LOOK_SECONDS)


async def send_due(database: Database, settings: Settings) -> int:
    """One look at what is due; how many attempts were made."""
    with database.begin() as tx:
        due = tx.webhooks.claim_due(_AT_ONCE)
    if due:
        await asyncio.gather(*(_attempt(database, settings, one) for one in due))
    return len(due)


async def _attempt(database: Database, settings: Settings, due: DueDelivery) -> None:
    answer = await _post(settings, due)
    with database.begin() as tx:
        if answer.arrived:
            tx.webhooks.delivered(due.id, answer.status or 0)
        elif answer.status == _GONE:
            tx.webhooks.missed(due.id, answer.status, answer.problem, None)
            tx.webhooks.disable(due.webhook_id, "the target answered 410: it wants no more")
        else:
            again = AGAIN_SECONDS[due.attempts - 1] if due.attempts <= len(AGAIN_SECONDS) else None
            soon = again and again * random.uniform(0.9, 1.1)
            tx.webhooks.missed(due.id, answer.status, answer.problem, soon)
    if not answer.arrived:
        log.warning("webhook %s: attempt %d at %s: %s", due.webhook_id, due.attempts, due.id, answer.problem)


async def _post(settings: Settings, due: DueDelivery) -> Answer:
    secrets = secrets_at(due.now, load_key(settings.secret_file), due.webhook_id, due.generation, due.rotated_at)
    try:
        target = await asyncio.to_thread(resolve, due.url, settings.webhook_targets)
        headers = headers_of(due.id, int(time.time()), due.body, secrets) | {
            "Host": target.url.netloc.decode(), "Content-Type": "application/json", "User-Agent": "penstock-webhooks",
        }  # fmt: skip
        async with (
            asyncio.timeout(ATTEMPT_SECONDS),
            httpx.AsyncClient(trust_env=False, timeout=ATTEMPT_SECONDS) as client,
        ):
            # To the address that was checked, under the name that was given; what is answered is not read.
            request = client.build_request(
                "POST", target.url_of_address, content=due.body.encode(), headers=headers,
                extensions={"sni_hostname": target.url.host},
            )  # fmt: skip
            response = await client.send(request, stream=True, follow_redirects=False)
            await response.aclose()
    except TargetRefusedError as error:
        return Answer(None, f"refused: {error}")
    except TimeoutError:
        return Answer(None, f"no answer within {ATTEMPT_SECONDS:.0f} s")
    except httpx.HTTPError as error:
        return Answer(None, f"{type(error).__name__}: {error}"[:300])
    status = response.status_code
    if 200 <= status < 300:
        return Answer(status)
    return Answer(status, f"it answered {status}" + (", and redirects are not followed" if 300 <= status < 400 else ""))
