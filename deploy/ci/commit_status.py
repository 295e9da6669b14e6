"""Sets the status of a commit when its run is over: receives the webhooks of a Penstock service. Needs Python alone.

    PENSTOCK_WEBHOOK_SECRET=whsec_… FORGE=github FORGE_TOKEN=… python commit_status.py 8770

The run's name says which commit: `penstock submit --name OWNER/REPO@SHA`. FORGE is github or gitlab, FORGE_API its
address where it is your own, PENSTOCK_URL what the status links to. Put a proxy with TLS in front.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGEST, OLDEST_SECONDS, SEEN_KEPT = 1 << 20, 300, 10_000
NAME = re.compile(r"(?P<repository>[\w.-]+(?:/[\w.-]+)+)@(?P<sha>[0-9a-f]{7,64})")
APIS = {"github": "https://api.github.com", "gitlab": "https://gitlab.com/api/v4"}
STATES = {
    "github": {"succeeded": "success", "failed": "failure", "cancelled": "error"},
    "gitlab": {"succeeded": "success", "failed": "failed", "cancelled": "canceled"},
}
seen: dict[str, None] = {}


def is_genuine(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """Whether the message was signed with the secret, and lately."""
    sent, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent or not at.isdecimal() or abs(time.time() - int(at)) > OLDEST_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = hmac.new(key, f"{sent}.{at}.".encode() + body, hashlib.sha256).digest()
    given = (part.partition(",")[2] for part in headers.get("webhook-signature", "").split())
    return any(hmac.compare_digest(base64.b64encode(wanted).decode(), one) for one in given)


def request_for(run: dict[str, object], forge: str, api: str, token: str) -> urllib.request.Request | None:
    """What sets the status; None for a run whose name says no commit."""
    commit = NAME.fullmatch(str(run.get("name", "")))
    if commit is None:
        return None
    state = STATES[forge][str(run["state"])]
    error = run.get("error")
    text = str(error.get("what", "")) if isinstance(error, dict) else f"the run {run['state']}"
    page = f"{os.environ.get('PENSTOCK_URL', '')}/runs/{run['run']}"
    if forge == "github":
        url = f"{api}/repos/{commit['repository']}/statuses/{commit['sha']}"
        fields = {"state": state, "context": "penstock", "description": text[:140], "target_url": page}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    else:
        url = f"{api}/projects/{urllib.parse.quote(commit['repository'], safe='')}/statuses/{commit['sha']}"
        fields = {"state": state, "name": "penstock", "description": text[:255], "target_url": page}
        headers = {"PRIVATE-TOKEN": token}
    data = json.dumps(fields).encode()
    return urllib.request.Request(url, data, {**headers, "Content-Type": "application/json"}, method="POST")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            return self._answer(413)
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_genuine(headers, body, os.environ["PENSTOCK_WEBHOOK_SECRET"]):
            return self._answer(401)
        if headers["webhook-id"] in seen:  # it arrived before
            return self._answer(204)
        message = json.loads(body)
        forge = os.environ.get("FORGE", "github")
        api = os.environ.get("FORGE_API", APIS[forge]).rstrip("/")
        run = message["data"] if message["type"].startswith("run.") else {}
        request = request_for(run, forge, api, os.environ.get("FORGE_TOKEN", "")) if run else None
        try:
            if request is not None:
                urllib.request.urlopen(request, timeout=15).close()
        except OSError as error:
            print(f"the status was not set: {error}", file=sys.stderr, flush=True)
            return self._answer(502)  # the service sends it again
        seen[headers["webhook-id"]] = None
        while len(seen) > SEEN_KEPT:
            del seen[next(iter(seen))]
        return self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
    print(f"listening on port {server.server_address[1]}", flush=True)
    server.serve_forever()
