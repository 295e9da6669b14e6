"""The settings that only the API needs: who may ask, how much, and under which names."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.services.jobs.quotas import NO_QUOTAS, Quotas
from penstock.services.settings import SettingError, Settings

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class ApiOptions:
    """Limits and doors of the API. Field docs name the variable."""

    auth: bool = False
    """PENSTOCK_AUTH: on or off; on unless it is said. On loopback too: other users of a machine reach that."""
    allowed_hosts: tuple[str, ...] = LOOPBACK_NAMES
    """PENSTOCK_ALLOWED_HOSTS: names that a Host header may carry, or *. Default: loopback names without
    tokens (another site could otherwise rebind its name to this machine), everything with tokens."""
    max_model_bytes: int = 512 * MIB
    """PENSTOCK_MAX_MODEL_BYTES: the largest ONNX or linalg file."""
    max_source_bytes: int = MIB
    """PENSTOCK_MAX_SOURCE_BYTES: the largest Python file."""
    max_content_bytes: int = 16 * 1024 * MIB
    """PENSTOCK_MAX_CONTENT_BYTES: the largest file that a worker on another machine may send."""
    max_body_bytes: int = MIB
    """PENSTOCK_MAX_BODY_BYTES: the largest body of any other request."""
    max_trials: int = 10_000
    """PENSTOCK_MAX_TRIALS: the most trials one run may ask for."""
    max_waiting_runs: int = 500
    """PENSTOCK_MAX_WAITING_RUNS: runs that may be queued or running before new ones are refused; three quarters
    of them of one owner."""
    max_streams: int = 2000
    """PENSTOCK_MAX_STREAMS: open event streams and long polls of this process; three quarters of them of one
    owner."""
    access_log: bool = False
    """PENSTOCK_ACCESS_LOG: on (the default of a service) or off: a line of JSON for each request."""
    quotas: Quotas = NO_QUOTAS
    """PENSTOCK_QUOTA_RUNS, PENSTOCK_QUOTA_TRIALS, PENSTOCK_QUOTA_GB, PENSTOCK_QUOTA_HOURS: what each owner may have:
    runs that are not over, their trials, files kept, hours of steps in a month. Not limited if unset."""
    low_disk_bytes: int = 512 * MIB
    """PENSTOCK_LOW_DISK_BYTES: free space below which nothing new is taken in."""

    def body_limit(self, method: str, path: str, content_type: str) -> int:
        """The largest body for a request: files are big, everything else is small and is read whole into memory."""
        if method == "POST" and path.rstrip("/") == "/v1/models" and content_type.startswith("multipart/"):
            return self.max_model_bytes + 64 * KIB  # room for the multipart envelope
        if method == "PUT" and path.startswith("/v1/contents/"):
            return self.max_content_bytes
        return self.max_body_bytes

    @staticmethod
    def from_environment(settings: Settings, environment: Mapping[str, str] | None = None) -> ApiOptions:
        env = os.environ if environment is None else environment
        auth = _auth(env.get("PENSTOCK_AUTH", "").strip().lower() or "on")
        hosts = tuple(name.strip() for name in env.get("PENSTOCK_ALLOWED_HOSTS", "").split(",") if name.strip())
        default_hosts = ("*",) if auth else (*LOOPBACK_NAMES, settings.api_host)
        default = ApiOptions()
        read = _counts(env)
        return ApiOptions(
            auth=auth,
            allowed_hosts=hosts or default_hosts,
            max_model_bytes=read("MAX_MODEL_BYTES", default.max_model_bytes),
            max_source_bytes=read("MAX_SOURCE_BYTES", default.max_source_bytes),
            max_content_bytes=read("MAX_CONTENT_BYTES", default.max_content_bytes),
            max_body_bytes=read("MAX_BODY_BYTES", default.max_body_bytes),
            max_trials=read("MAX_TRIALS", default.max_trials),
            max_waiting_runs=read("MAX_WAITING_RUNS", default.max_waiting_runs),
            max_streams=read("MAX_STREAMS", default.max_streams),
            access_log=_on_or_off(env, "ACCESS_LOG"),
            quotas=_quotas(env),
            low_disk_bytes=read("LOW_DISK_BYTES", default.low_disk_bytes),
        )


def _auth(word: str) -> bool:
    if word not in ("on", "off"):
        raise SettingError(f"PENSTOCK_AUTH={word!r}: expected on or off")
    return word == "on"


def _on_or_off(env: Mapping[str, str], name: str) -> bool:
    word = env.get(f"PENSTOCK_{name}", "").strip().lower() or "on"
    if word not in ("on", "off"):
        raise SettingError(f"PENSTOCK_{name}={word!r}: expected on or off")
    return word == "on"


def _quotas(env: Mapping[str, str]) -> Quotas:
    def read(name: str) -> float | None:
        variable = f"PENSTOCK_QUOTA_{name}"
        text = env.get(variable, "").strip()
        try:
            value = float(text) if text else None
        except ValueError:
            value = math.nan
        if value is not None and not 0 <= value < math.inf:
            raise SettingError(f"{variable}={text!r}: expected a number from 0")
        return value

    runs, trials = read("RUNS"), read("TRIALS")
    whole = [None if value is None else int(value) for value in (runs, trials)]
    return Quotas(whole[0], whole[1], read("GB"), read("HOURS"))


def _counts(env: Mapping[str, str]) -> Callable[[str, int], int]:
    def read(name: str, default: int) -> int:
        text = env.get(f"PENSTOCK_{name}", "").strip()
        if not text:
            return default
        if not text.isdecimal() or int(text) < 1:
            raise SettingError(f"PENSTOCK_{name}={text!r}: expected a whole number from 1")
        return int(text)

    return read
