"""Run the API on a listening socket that the supervisor opened: `python -m penstock.services.supervisor.serve_api FD`.

The supervisor keeps the socket, so a crashed API loses no port and its callers wait instead of being refused.
"""

from __future__ import annotations

import socket
import sys

import uvicorn

APPLICATION = "penstock.services.api.app:create_app"
SECONDS_FOR_OPEN_REQUESTS = 3


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    listener.set_inheritable(False)  # the API's own child processes have no business with it
    config = uvicorn.Config(
        APPLICATION,
        factory=True,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=SECONDS_FOR_OPEN_REQUESTS,  # event streams never end by themselves
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
