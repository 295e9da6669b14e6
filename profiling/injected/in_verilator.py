"""A body in SystemVerilog, run as it will stand in the core: without pauses for its times, then with random ones.

A monitor in the module around it prints at which count each token passes. It counts the cycles in which the output was
not held up: a body that holds moves in exactly these, so that II and depth are the same with pauses and without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.dialects import nest
from penstock.compiler.errors import PenstockError
from penstock.compiler.schedule import load_library, schedule_nest
from penstock.profiling.injected.contract import BodyCase
from penstock.profiling.injected.tokens import BodyTokens, draw, first_difference
from penstock.profiling.open_rtl.run import RtlRun, simulate_rtl
from penstock.profiling.open_rtl.verilate import build
from penstock.profiling.tool_runner import ToolRunner

RUNS = 3
_SEEDS = (1, 2)
_END = "endmodule\n"


def check_in_verilator(case: BodyCase, tools: ToolRunner) -> None:
    """Raises the first clause that is broken."""
    library = load_library(case.platform.operators, case.platform.check_clock(case.clock_mhz))
    name = case.task.sym_name.data
    design = emit_rtl(case.module, library, {}, tasks=[name])
    design = _watched(design, f"task_{name}.sv")
    (op,) = (one for one in case.task.body.block.ops if isinstance(one, nest.NestOp))
    schedule = schedule_nest(op, library)
    patterns = {port.channel: port.pattern for port in schedule.ports}
    tokens, idle = draw(case, RUNS), 4 * (schedule.latency + 256)
    inputs = {p.name: tokens.given[_channel(p)] for p in design.ports if p.kind == "stream_in"}
    try:
        program = build(design, tools)
    except PenstockError as error:
        if error.code != "profile-tool-failed":
            raise
        raise PenstockError(
            code=error.code, what=f"{case.body.name}: Verilator does not build it", where=case.where,
            limit=error.limit or error.what, hint="correct the SystemVerilog; its pins are in docs/tasks.md",
        ) from error  # fmt: skip
    checker = _Checker(case, design, tokens, {n: [p.iteration(t) for t in range(p.count)] for n, p in patterns.items()})

    def run(seed: int | None) -> RtlRun:
        return simulate_rtl(
            design, inputs, frames=RUNS, stall_seed=seed, idle_cycles=idle, program=program, tools=tools,
            most_cycles=RUNS * 64 * idle, timeout=300.0,
        )  # fmt: skip

    checker.free(run(None))
    for seed in _SEEDS:
        checker.stalled(run(seed))


def _channel(port: RtlPort) -> str:
    assert port.channel is not None
    return port.channel


@dataclass(frozen=True)
class _Checker:
    case: BodyCase
    design: RtlDesign
    tokens: BodyTokens
    rounds: Mapping[str, Sequence[int]]
    """By channel, the round of each token of a run."""

    def free(self, run: RtlRun) -> None:
        """Nothing keeps the body waiting: tokens, II, depth, answers."""
        body, case = self.case.body, self.case
        self._counts(run)
        entries = self._entries(run)
        spaces = {
            -(-(later - first) // (to - at))
            for frame in entries for (at, first), (to, later) in pairwise(frame.items())
        }  # fmt: skip
        if spaces - {body.ii}:
            raise case.broken("ii", body.ii, max(spaces), f"write ii={max(spaces)}, or let a round enter in time")
        depths = self._depths(run, entries)
        if depths != {body.depth}:
            worst = max(depths, key=lambda one: (one != body.depth, one))
            hint = "let every token take as long" if len(depths) > 1 else f"write depth={worst}"
            raise case.broken("depth", body.depth, " or ".join(map(str, sorted(depths)[:4])), hint)
        if wrong := self._wrong(run):
            raise case.broken("answers", wrong[0], wrong[1], "mend the body, or the task that it stands for")

    def stalled(self, run: RtlRun) -> None:
        """Ports pause at random."""
        found, hint = "", "while the output is not taken, keep it and let nothing move; else go on"
        if run.deadlocked:
            found = "it stops for ever"
        elif run.measured["unsteady"]:
            found = f"{run.measured['unsteady']} tokens withdrawn or changed before they were taken"
        elif run.measured["greedy"]:
            found = f"{run.measured['greedy']} tokens taken while the output was not"
        elif wrong := self._wrong(run):
            found = f"other answers than without pauses ({wrong[1]})"
        elif (depths := self._depths(run, self._entries(run))) != {self.case.body.depth}:
            found = f"tokens that take up to {max(depths)} cycles where nothing is in their way"
        if found:
            raise self.case.broken("stalls", self.case.body.stalls, found, hint)

    def _counts(self, run: RtlRun) -> None:
        pins = self.case.body.pins
        for port in sorted(self.design.ports, key=lambda one: one.kind != "stream_out"):
            count, wanted = run.ports[port.name].count, port.words * RUNS
            writes = port.kind == "stream_out"
            pin = pins[_channel(port)]
            if run.deadlocked and count < wanted:
                more = "waits for more input, or never gives the rest" if writes else "takes no more"
                raise self.case.broken(
                    "tokens", f"{port.words} of {pin} a run", f"{count} in {RUNS} runs: it {more}",
                    f"let it {'give' if writes else 'take'} all tokens that the task does",
                )  # fmt: skip
        if run.measured["extra"]:
            out = next(port for port in self.design.ports if port.kind == "stream_out")
            raise self.case.broken(
                "tokens", f"{out.words} of {pins[_channel(out)]} a run", "more: it offers one before a run begins",
                "let it give as many tokens as the task does, and none of its own",
            )  # fmt: skip

    def _passed(self, run: RtlRun, port: RtlPort) -> list[list[tuple[int, int]]]:
        """For each run, round and count of every token."""
        rounds = self.rounds[_channel(port)]
        counts = [run.measured[f"{port.name}.{number}"] for number in range(len(rounds) * RUNS)]
        return [list(zip(rounds, counts[i * len(rounds) :], strict=False)) for i in range(RUNS)]

    def _entries(self, run: RtlRun) -> list[dict[int, int]]:
        """When each round that takes tokens entered, run by run."""
        found: list[dict[int, int]] = [{} for _ in range(RUNS)]
        for port in self.design.ports:
            if port.kind != "stream_in":
                continue
            for frame, tokens in zip(found, self._passed(run, port), strict=True):
                for at, count in tokens:
                    if frame.setdefault(at, count) != count:
                        raise self.case.broken(
                            "stalls", self.case.body.stalls, f"round {at} takes its tokens in different cycles",
                            "take all tokens of a round in the cycle in which all are there",
                        )  # fmt: skip
        return [dict(sorted(frame.items())) for frame in found]

    def _depths(self, run: RtlRun, entries: Sequence[Mapping[int, int]]) -> set[int]:
        """Cycles from a round's entry to its token."""
        (out,) = (port for port in self.design.ports if port.kind == "stream_out")
        found: set[int] = set()
        for frame, tokens in zip(entries, self._passed(run, out), strict=True):
            for at, count in tokens:
                before = max(one for one in frame if one <= at)
                found.add(count - frame[before] - (at - before) * self.case.body.ii + 1)
        return found

    def _wrong(self, run: RtlRun) -> tuple[str, str] | None:
        """The first token that is not the task's."""
        (out,) = (port for port in self.design.ports if port.kind == "stream_out")
        wanted, found = self.tokens.wanted[_channel(out)], run.outputs[out.name]
        if len(found) == len(wanted):
            at = first_difference(found, wanted)
            if at is None:
                return None
            lane = next(i for i, (a, b) in enumerate(zip(found[at].ravel(), wanted[at], strict=True)) if a != b)
            return f"{wanted[at][lane]} (token {at}, lane {lane}: the task's)", str(found[at].ravel()[lane])
        return f"{len(wanted)} tokens", f"{len(found)}"


def _watched(design: RtlDesign, file: str) -> RtlDesign:
    """The module around the body, with a monitor in it."""
    ins = [port.name for port in design.ports if port.kind == "stream_in"]
    (out,) = (port.name for port in design.ports if port.kind == "stream_out")
    lines = [
        "logic [31:0] moved, extra, greedy, unsteady;", "logic held_up;", f"logic [$bits({out}_tdata)-1:0] kept;",
        f"wire stopped = {out}_tvalid & ~{out}_tready;",
        "wire takes = " + " | ".join(f"({n}_tvalid & {n}_tready)" for n in ins) + ";",
        "wire began = " + " | ".join(f"({n}_count != 0)" for n in ins) + ";",
        "always_ff @(posedge clk) begin",
        f"  held_up <= ~rst & stopped; kept <= {out}_tdata;",
        "  if (rst) begin moved <= 0; extra <= 0; greedy <= 0; unsteady <= 0; end",
        "  else begin",
        "    if (~stopped) moved <= moved + 1;",
        f"    if ({out}_tvalid & ~began & ~takes) extra <= extra + 1;",
        "    if (stopped & takes) greedy <= greedy + 1;",
        f"    if (held_up & (~{out}_tvalid | kept != {out}_tdata)) unsteady <= unsteady + 1;",
        "  end",
        "end",
    ]  # fmt: skip
    for name in (*ins, out):
        lines += [
            f"logic [31:0] {name}_number;",
            f"always_ff @(posedge clk) if (rst) {name}_number <= 0; else if ({name}_tvalid & {name}_tready) begin",
            f"  {name}_number <= {name}_number + 1;",
            f'  $display("penstock.measured {name}.%0d %0d", {name}_number, moved);',
            "end",
        ]
    facts = "".join(f'$display("penstock.measured {fact} %0d", {fact}); ' for fact in ("extra", "greedy", "unsteady"))
    text = design.files[file]
    assert text.endswith(_END)
    made = text.removesuffix(_END) + "\n".join(lines) + f"\nfinal begin {facts}end\n" + _END
    return replace(design, files={**design.files, file: made})
