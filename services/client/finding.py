"""Which service is meant, and by whose token: what was said, else the environment, else one's own `penstock up`."""

from __future__ import annotations

import os

import httpx

from penstock.services.client.errors import UsageError
from penstock.services.settings import Settings
from penstock.services.supervisor.home import Home, Running

_CONNECT_SECONDS = 5.0


def find_service(url: str | None, token: str | None) -> tuple[str, str]:
    """Its address and a token. PENSTOCK_URL and PENSTOCK_TOKEN stand in for what is None; then one's own service."""
    settings = Settings.from_environment()
    own = Home(settings.home).running()  # on whatever port it got
    if url is None:
        url = settings.url if own is None or os.environ.get("PENSTOCK_URL") else own.url
    address = checked_url(url)
    if token is None:
        token = os.environ.get("PENSTOCK_TOKEN") or _local_token(settings, own, address)
    return address, token


def checked_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"'{url}' is no address of a service: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError(f"'{url}' is no address of a service: write http://HOST:PORT")
    return url.rstrip("/")


def headers_for(token: str) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": "penstock-client"}
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def timeout_of(seconds: float) -> httpx.Timeout:
    """For an answer; connecting takes moments, or nobody is there."""
    return httpx.Timeout(seconds, connect=_CONNECT_SECONDS)


def _local_token(settings: Settings, own: Running | None, url: str) -> str:
    """The token that `penstock up` left for its own user, if that service is the one at this address."""
    return settings.own_token() if own is not None and own.url.rstrip("/") == url else ""
