"""The Celery application: it wakes workers. Its settings avoid the traps that a broker brings.

No result backend, no retries, no time limits: Postgres holds all of that. A message is acknowledged before
its step runs: a lost one is sent again, and one too many finds nothing to claim.
"""

from __future__ import annotations

import redis
from celery import Celery
from kombu.entity import Queue
from kombu.transport.redis import Transport

from penstock.services.settings import Settings

TASK = "penstock.work"

# A Redis that does not let itself be written to (a replica after a failover, a full memory) is one that is away: it
# comes back. Celery takes its answer for an error of the program, and would end the worker for it.
Transport.connection_errors = (*Transport.connection_errors, redis.ResponseError)


def make_app(settings: Settings) -> Celery:
    app = Celery("penstock", broker=settings.broker_url(), set_as_current=False)
    app.conf.update(
        task_queues=[Queue(name) for name in settings.queues],
        task_create_missing_queues=True,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=False,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,  # a busy worker must not sit on steps that another could do
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_proc_alive_timeout=60.0,
        worker_max_tasks_per_child=25,  # each does up to 20 steps; compilers leak; a fresh child costs a fork
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=5,
        broker_transport_options={
            "visibility_timeout": 3600,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "max_retries": 1,
        },
    )
    return app
