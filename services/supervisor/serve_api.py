"""Run the API on a listening socket that the supervisor opened: `python -m penstock.services.supervisor.serve_api FD`.

The supervisor keeps the socket, so a crashed API loses no port and its callers wait instead of being refused. Without
FD it listens by itself, at PENSTOCK_API_HOST and PENSTOCK_API_PORT: so images start it.
"""

from __future__ import annotations

import gc
import socket
import sys

import uvicorn

from penstock.services.settings import Settings
from penstock.services.supervisor.protocol import BoundedProtocol, allow_many_connections
from penstock.services.supervisor.stack import listen

APPLICATION = "penstock.services.api.app:create_app"
SECONDS_FOR_OPEN_REQUESTS = 3


def main() -> None:
    settings = Settings.from_environment()
    opened = socket.socket(fileno=int(sys.argv[1])) if len(sys.argv) > 1 else None
    listener = opened or listen(settings.api_host, settings.api_port)
    listener.set_inheritable(False)  # the API's own child processes have no business with it
    proxies = list(settings.trusted_proxies)
    config = uvicorn.Config(
        APPLICATION,
        factory=True,
        log_level="warning",
        access_log=False,
        proxy_headers=bool(proxies),  # else any local program could say that it came from elsewhere
        forwarded_allow_ips=proxies,
        http=BoundedProtocol,
        limit_concurrency=allow_many_connections(),  # more are told 503 at once
        timeout_keep_alive=15,
        backlog=1024,
        timeout_graceful_shutdown=SECONDS_FOR_OPEN_REQUESTS,  # event streams never end by themselves
    )
    config.load()
    gc.freeze()  # what every request uses is not looked through again and again: of a page of many trials that was half
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
