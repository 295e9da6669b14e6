"""What the source of a body in HLS C++ will become, by the rules that foreign kernels are read with: II and depth.

A prediction is no measurement: an II below it is refused, since every figure of the design would rest on it; a depth
that differs is said beside the design. What cannot be read is said too, and is the author's word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.compiler.dialects.injected import Injected
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.platforms import Platform
from penstock.compiler.schedule import load_library
from penstock.profiling.cache import runs_folder
from penstock.profiling.work_folder import private_folder

_HEAD = ("#include <ap_int.h>", "#include <hls_stream.h>", "#include <hls_vector.h>", "#include <hls_math.h>")


@dataclass(frozen=True)
class BodyPrediction:
    """II and depth, with the line of the body and what limits it; or `unread`, why there are none."""

    ii: int = 0
    depth: int = 0
    line: int = 0
    limit: str = ""
    unread: str = ""

    def said(self, body: Injected) -> str:
        """Beside what the contract declares."""
        if self.unread:
            return f"II and depth are declared: its source was not timed ({self.unread})"
        return f"II {body.ii} and depth {body.depth} are declared, {self.ii} and {self.depth} predicted from its source"


def predict(body: Injected, platform: Platform, clock_mhz: float) -> BodyPrediction:
    """Of one body at a clock. Its text is parsed, and nothing of it is run."""
    text = re.sub(r"\bpk::", "hls::", body.text)
    try:
        with private_folder(runs_folder()) as folder:
            path = folder / "body.cpp"
            path.write_text("\n".join([*_HEAD, text]))
            kernel = read_kernel(path, body.symbol)
            timed = time_kernel(kernel, Delays(load_library(platform.operators, platform.check_clock(clock_mhz))))
    except PenstockError as error:
        return BodyPrediction(unread=error.what[:200])
    found = [(item, schedule) for item, schedule in timed.schedules.items() if isinstance(item, Pipeline)]
    if len(found) != 1:
        return BodyPrediction(unread=f"it is {len(found)} pipelines, a contract is of one")
    [(pipeline, schedule)] = found
    limit = schedule.limit if schedule.ii > 1 else None
    line = (limit.line if limit else 0) or pipeline.line
    return BodyPrediction(schedule.ii, schedule.depth, line - len(_HEAD), limit.reason if limit else "")
