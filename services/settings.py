"""Every setting of the service's processes, read once from the environment and typed.

Imports nothing heavy, so that the command line and the API start quickly.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from penstock.services.step_kinds import LICENCES, QUEUES

T = TypeVar("T")
Launcher = Literal["local", "slurm", "lsf"]
LOCAL: Launcher = "local"


class SettingError(ValueError):
    """An environment variable has a value that Penstock cannot use."""


@dataclass(frozen=True)
class Settings:
    """What differs between one person's machine and a lab's cluster. Field docs name the variable."""

    home: Path
    """PENSTOCK_HOME: data, content store, logs, work folders."""
    database_url: str | None = None
    """PENSTOCK_DATABASE_URL: set by `penstock up` for its children, or by an administrator."""
    redis_url: str | None = None
    """PENSTOCK_REDIS_URL: redis://host:port/0 or unix:///path/to/socket."""
    store_url: str | None = None
    """PENSTOCK_STORE_URL: where a worker that shares no folder with the service sends and fetches files: the API."""
    store_token: str = field(default="", repr=False)
    """PENSTOCK_STORE_TOKEN: the token, of scope admin, that such a worker shows there."""
    api_host: str = "127.0.0.1"
    """PENSTOCK_API_HOST."""
    api_port: int = 8750
    """PENSTOCK_API_PORT."""
    trusted_proxies: tuple[str, ...] = ()
    """PENSTOCK_TRUSTED_PROXIES: addresses whose X-Forwarded-For and -Proto are believed; nobody's unless named."""
    api_processes: int = 1
    """PENSTOCK_API_PROCESSES: how many `penstock up` starts on the same address; each has streams of its own."""
    url: str = "http://127.0.0.1:8750"
    """PENSTOCK_URL: where the command line finds the service."""
    lease_seconds: float = 30.0
    """PENSTOCK_LEASE_SECONDS: a step whose worker is silent for so long is given to another worker."""
    heartbeat_seconds: float = 5.0
    """PENSTOCK_HEARTBEAT_SECONDS: how often a worker renews its lease and looks for a cancellation."""
    reaper_seconds: float = 2.0
    """PENSTOCK_REAPER_SECONDS: how often expired leases are looked for."""
    stop_seconds: float = 5.0
    """PENSTOCK_STOP_SECONDS: how long a Python body may go on after a cancel before its process is ended."""
    outage_seconds: float = 600.0
    """PENSTOCK_OUTAGE_SECONDS: how long a worker keeps its work while the database cannot be reached."""
    licence_seconds: float = 60.0
    """PENSTOCK_LICENCE_SECONDS: wait for a tool's licence that is taken; each further wait of a step is longer."""
    licences: Mapping[str, int] = field(default_factory=dict[str, int])
    """PENSTOCK_LICENCES: how many of each tool's licences the service may use at once, such as vitis_hls=2,vivado=1.
    The same for all workers and the dispatcher; what is not named is not counted."""
    work_disk_bytes: int = 64 << 20
    """PENSTOCK_WORK_DISK_BYTES: free space below which a worker begins no step."""
    tool_hours: float = 4.0
    """PENSTOCK_TOOL_HOURS: the most that one measurement by an HLS tool may take."""
    build_hours: float = 24.0
    """PENSTOCK_BUILD_HOURS: the most that a bitstream may take from compiling to packaging."""
    tool_memory_gb: float | None = None
    """PENSTOCK_TOOL_MEMORY_GB: what all processes of an HLS tool may take together; not limited if unset."""
    tool_disk_gb: float = 20.0
    """PENSTOCK_TOOL_DISK_GB: what a measurement may write into its work folder; a bitstream ten times as much."""
    tool_folder: Path | None = None
    """PENSTOCK_TOOL_FOLDER: where HLS tools work and builds are kept, if not below PENSTOCK_HOME."""
    launcher: Launcher = LOCAL
    """PENSTOCK_LAUNCHER: where licensed tools run: on the worker's machine, or as jobs. Those work in
    PENSTOCK_TOOL_FOLDER, which the cluster must share."""
    launcher_options: str = ""
    """PENSTOCK_LAUNCHER_OPTIONS: what each submission gets besides, such as --partition=fpga --licenses=vivado:1."""
    tool_keep: Literal["never", "failed", "always"] = "never"
    """PENSTOCK_TOOL_KEEP: work folders below PENSTOCK_TOOL_FOLDER that stay for two weeks, for a look."""
    allow_python_models: bool = False
    """PENSTOCK_ALLOW_PYTHON_MODELS: they execute their submitter's code; `penstock up --allow-python` sets it."""
    fence: Literal["required", "off"] = "required"
    """PENSTOCK_FENCE: off imports models without a fence of Penstock's own, where a container is the fence."""
    import_seconds: int = 120
    """PENSTOCK_IMPORT_SECONDS: what an import may compute; by the clock it may take four times as long, and what it
    waits for a processor besides."""
    import_memory_gb: float = 4.0
    """PENSTOCK_IMPORT_MEMORY_GB: what an import may hold; half of that is the most that may come out of it."""
    profiles_kept: int = 100_000
    """PENSTOCK_PROFILES_KEPT: measured kernels that are kept; what a run cites is kept beyond that."""
    profiles_days: float = 180.0
    """PENSTOCK_PROFILES_DAYS: how long a measured kernel is kept that no run cites and nobody asks for."""
    audit_days: float | None = None
    """PENSTOCK_AUDIT_DAYS: how long entries of the audit log are kept; for ever if unset."""
    events_days: float | None = None
    """PENSTOCK_EVENTS_DAYS: how long after its end a run keeps its events; as long as the run if unset."""
    webhook_targets: tuple[str, ...] = ()
    """PENSTOCK_WEBHOOK_TARGETS: where webhooks may go: ci.example.org, *.example.org, or * for every public address;
    a private network only as what it is, such as 10.1.0.0/16. Nowhere unless it is named."""
    queues: tuple[str, ...] = QUEUES
    """PENSTOCK_QUEUES: comma-separated queues that a worker takes steps from."""
    concurrency: int = 1
    """PENSTOCK_CONCURRENCY: steps that one worker runs at once."""
    step_modules: tuple[str, ...] = ("penstock.services.steps.bodies",)
    """PENSTOCK_STEP_MODULES: modules that register step bodies when a worker starts."""

    @property
    def store_folder(self) -> Path:
        return self.home / "store"

    @property
    def work_folder(self) -> Path:
        return self.home / "work"

    @property
    def secret_file(self) -> Path:
        """The key of token digests; made by the API at its first start, readable by its user only."""
        return self.home / "secret.key"

    @property
    def token_file(self) -> Path:
        """The token of whoever started the service with `penstock up`, readable by its user only."""
        return self.home / "token"

    def own_token(self) -> str:
        """What that file holds; empty where there is none that this user may read."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self.token_file.read_text().strip()
        return ""

    def require_database_url(self) -> str:
        if not self.database_url:
            raise SettingError("PENSTOCK_DATABASE_URL is not set: start the stack with `penstock up`, or set it")
        return self.database_url

    def require_redis_url(self) -> str:
        """The form that redis-py takes."""
        if not self.redis_url:
            raise SettingError("PENSTOCK_REDIS_URL is not set: start the stack with `penstock up`, or set it")
        return self.redis_url.replace("redis+socket://", "unix://", 1)

    def broker_url(self) -> str:
        """The form that Celery takes: its name for a unix socket is redis+socket."""
        return self.require_redis_url().replace("unix://", "redis+socket://", 1)

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
        env = os.environ if environment is None else environment
        read = _Reader(env)
        host = read("API_HOST", _text, "127.0.0.1")
        port = read("API_PORT", _port, 8750)
        lease = read("LEASE_SECONDS", _positive, 30.0)
        heartbeat = read("HEARTBEAT_SECONDS", _positive, min(5.0, lease / 4))
        if heartbeat * 2 > lease:
            raise SettingError(
                f"PENSTOCK_HEARTBEAT_SECONDS={heartbeat:g} must be at most half of "
                f"PENSTOCK_LEASE_SECONDS={lease:g}: one missed heartbeat must not lose a step"
            )
        launcher: Launcher = read("LAUNCHER", _launcher, LOCAL)
        if launcher != "local" and not env.get("PENSTOCK_TOOL_FOLDER", "").strip():
            raise SettingError(
                f"PENSTOCK_LAUNCHER={launcher} needs PENSTOCK_TOOL_FOLDER: a folder that the cluster's nodes see, too"
            )
        return Settings(
            home=read("HOME", _folder, default_home()),
            database_url=read("DATABASE_URL", _url, None),
            redis_url=read("REDIS_URL", _url, None),
            store_url=read("STORE_URL", _url, None),
            store_token=read("STORE_TOKEN", _text, ""),
            api_host=host,
            api_port=port,
            trusted_proxies=read("TRUSTED_PROXIES", _names, ()),
            api_processes=read("API_PROCESSES", _count, 1),
            url=read("URL", _url, f"http://{reachable(host)}:{port}").rstrip("/"),
            lease_seconds=lease,
            heartbeat_seconds=heartbeat,
            reaper_seconds=read("REAPER_SECONDS", _positive, 2.0),
            stop_seconds=read("STOP_SECONDS", _positive, 5.0),
            outage_seconds=read("OUTAGE_SECONDS", _positive, 600.0),
            licence_seconds=read("LICENCE_SECONDS", _positive, 60.0),
            licences=read("LICENCES", _amounts, {}),
            work_disk_bytes=read("WORK_DISK_BYTES", _count, 64 << 20),
            tool_hours=read("TOOL_HOURS", _positive, 4.0),
            build_hours=read("BUILD_HOURS", _positive, 24.0),
            tool_memory_gb=read("TOOL_MEMORY_GB", _positive, None),
            tool_disk_gb=read("TOOL_DISK_GB", _positive, 20.0),
            tool_folder=read("TOOL_FOLDER", _folder, None),
            launcher=launcher,
            launcher_options=read("LAUNCHER_OPTIONS", _text, ""),
            tool_keep=read("TOOL_KEEP", _keep, "never"),
            allow_python_models=read("ALLOW_PYTHON_MODELS", _switch, False),
            fence=read("FENCE", _fence, "required"),
            import_seconds=read("IMPORT_SECONDS", _count, 120),
            import_memory_gb=read("IMPORT_MEMORY_GB", _positive, 4.0),
            profiles_kept=read("PROFILES_KEPT", _count, 100_000),
            profiles_days=read("PROFILES_DAYS", _positive, 180.0),
            audit_days=read("AUDIT_DAYS", _positive, None),
            events_days=read("EVENTS_DAYS", _positive, None),
            webhook_targets=read("WEBHOOK_TARGETS", _names, ()),
            queues=read("QUEUES", _names, QUEUES),
            concurrency=read("CONCURRENCY", _count, 1),
            step_modules=read("STEP_MODULES", _names, ("penstock.services.steps.bodies",)),
        )


def default_home() -> Path:
    """Root's home cannot be reached by the unprivileged user that Postgres must run as."""
    if os.geteuid() == 0:
        return Path("/var/lib/penstock")
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "penstock"


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    def __call__(self, name: str, parse: Callable[[str], T], default: T) -> T:
        variable = f"PENSTOCK_{name}"
        text = self.environment.get(variable, "").strip()
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise SettingError(f"{variable}={text!r}: {error}") from None


def _text(text: str) -> str:
    return text


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _url(text: str) -> str:
    if not urlsplit(text).scheme:
        raise ValueError("expected a URL, such as redis://127.0.0.1:6379/0")
    return text


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError("expected a number above 0")
    return value


def _keep(text: str) -> Literal["never", "failed", "always"]:
    match text.lower():
        case "never" | "failed" | "always" as word:
            return word
        case _:
            raise ValueError("expected never, failed or always")


def _launcher(text: str) -> Launcher:
    word = text.lower()
    if word == "local":
        return "local"
    if word == "slurm":
        return "slurm"
    if word == "lsf":
        return "lsf"
    raise ValueError("expected local, slurm or lsf")


def _fence(text: str) -> Literal["required", "off"]:
    match text.lower():
        case "required" | "off" as word:
            return word
        case _:
            raise ValueError("expected required or off")


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("expected a whole number from 1")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise ValueError("expected a port from 0 to 65535")
    return value


def _switch(text: str) -> bool:
    word = text.lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("expected 1 or 0")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ValueError("expected at least one name")
    return names


def _amounts(text: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for part in _names(text):
        name, _, count = part.partition("=")
        if name.strip() not in LICENCES or not count.strip().isdecimal() or int(count) < 1:
            raise ValueError(f"expected NAME=COUNT with a count from 1, and a name of {', '.join(LICENCES)}")
        found[name.strip()] = int(count)
    return found


def reachable(host: str) -> str:
    """The address for a client on the same machine: a listener on every interface is not an address."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
