"""A process that wants one profile: its tool notes in a file that it ran, then takes its time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from penstock.compiler.platforms import Resources
from penstock.db import Database
from penstock.profiling.protocol import Profile
from penstock.services.profiles import SharedProfiles


def profile_of(key: str) -> Profile:
    return Profile(
        key=key, name=key, tool="tool", tool_version="1", evidence="csynth", clock_mhz=100.0, latency_cycles=len(key),
        interval_cycles=1, initial_delay_cycles=1, ii=None, depth=None, resources=Resources(dsp=3),
    )  # fmt: skip


def main(url: str, run_id: str, key: str, ran: str, got: str, seconds: str) -> None:
    def tool() -> Profile:
        with Path(ran).open("a") as file:
            file.write("ran\n")
        time.sleep(float(seconds))
        return profile_of(key)

    found = SharedProfiles(Database(url), run_id, lease_seconds=2).fetch(key, tool)
    with Path(got).open("a") as file:
        file.write(f"{found.latency_cycles}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
