"""When a nest's pipeline moves: what is due in a stage, and whether the channels that it meets let it happen.

The front stands while anything due in it is impossible. A write behind the front that is due and finds its channel
full stops the clock enable of the whole nest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.compiler.backend.rtl.lines import SvLines, conjunction
from penstock.compiler.backend.rtl.stages import PipelineStages


@dataclass(frozen=True)
class ChannelSignals:
    """One access to a channel. `ready` says that the channel can; `signal` is told that the access happens."""

    stage: int
    due: str
    ready: str
    signal: str
    offers: bool
    """Whether `signal` is a stream's tvalid, which must not wait for its own tready."""


@dataclass
class Handshake:
    stages: PipelineStages
    meetings: list[ChannelSignals] = field(default_factory=list[ChannelSignals])

    def write(self, out: SvLines, signals: dict[str, list[str]]) -> None:
        """Adds to `signals` when each is given: other nests of the task may meet the same channel."""
        stages = self.stages
        front = [m for m in self.meetings if m.stage <= stages.front]
        behind = [m for m in self.meetings if m.stage > stages.front]
        stages.declare(stages.ce, 1)
        stages.declare(stages.go, 1)
        out.add(f"assign {stages.ce} = {self._possible(behind)};")
        out.add(f"assign {stages.go} = {self._possible(front, stages.ce)};")
        for meeting in self.meetings:
            group = front if meeting in front else behind
            others = [m for m in group if m.signal != meeting.signal]
            enable = stages.fires(meeting.stage)
            if meeting.offers:
                enable = self._possible(others, stages.ce if group is front else "")
            terms = [meeting.due] if enable == "1'b1" else [meeting.due, enable]
            signals.setdefault(meeting.signal, []).append(conjunction(terms))

    def _possible(self, meetings: list[ChannelSignals], also: str = "") -> str:
        terms = list(dict.fromkeys(f"(~({m.due}) | {m.ready})" if " " in m.due else f"(~{m.due} | {m.ready})"
                                   for m in meetings))  # fmt: skip
        return conjunction(([also] if also else []) + terms)


def write_signals(out: SvLines, signals: dict[str, list[str]]) -> None:
    """What a task tells its channels: any of the times at which any of its nests does."""
    for signal, whens in signals.items():
        out.add(f"assign {signal} = {' | '.join(f'({w})' for w in whens) if len(whens) > 1 else whens[0]};")
