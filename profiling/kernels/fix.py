"""A kernel's source with better pragmas: FIFO depths that are needed, banks where ports limit a loop, an II that is
reached. A change is kept if the simulated kernel is faster for it; FIFOs are cut last, to what they hold at most."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.area import area_of
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import Sources, lay_out, read_sources
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.storage import KernelArray, KernelStream
from penstock.compiler.hls_in.timed import Timed, time_kernel
from penstock.compiler.simulator import VITIS, Network, simulate
from penstock.profiling.kernels.analysis import LEAST_DEPTH, delays_of, fifos_of
from penstock.profiling.kernels.source_edits import SourceEdits, file_of
from penstock.profiling.kernels.tried import OnTried, TriedSource, nobody

MOST_TRIALS = 32
_MOST_FACTOR = 64
_SPARE = (0, 1, 2)
"""Slots beyond what a FIFO holds at most where none is full: a writer may be held up by the cycle of a read."""


@dataclass(frozen=True)
class FixedKernel:
    """`latency` is simulated, None where the kernel stops for ever; bits are those of all FIFOs."""

    text: str
    changes: tuple[str, ...]
    latency_before: int | None
    latency: int | None
    fifo_bits_before: int
    fifo_bits: int
    trials: int

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key != "text"}


@dataclass(frozen=True)
class _Measured:
    timed: Timed
    latency: int | None

    @property
    def fifo_bits(self) -> int:
        if not isinstance(self.timed.design, Network):
            return 0
        fifos = [c for c in self.timed.design.channels if c.kind == "fifo"]
        return sum((c.depth or LEAST_DEPTH) * c.bits * self.timed.lanes.get(c.name, 1) for c in fifos)

    def faster_than(self, other: _Measured) -> bool:
        return self.latency is not None and (other.latency is None or self.latency < other.latency)


def fix_kernel(
    path: Path, top: str, clock_mhz: float = 300.0, part: str = "xcu280-fsvh2892-2L-e",
    *, trials: int | None = None, watch: OnTried = nobody,
) -> FixedKernel:  # fmt: skip
    """The source with better pragmas and nothing else changed. The given one is the first of the `trials`."""
    delays = delays_of(part, clock_mhz)
    sources = read_sources(path)
    return _Fixer(sources, top, delays, trials, watch).run()


class _Fixer:
    def __init__(self, sources: Sources, top: str, delays: Delays, most: int | None, watch: OnTried) -> None:
        self.watch, self.told, self.most = watch, 0, most
        self.sources, self.top, self.delays = sources, top, delays
        self.text = sources.main.read_bytes().decode(errors="surrogateescape")
        self.file = str(sources.main.relative_to(sources.folder))
        self.edits = SourceEdits()
        self.changes: list[str] = []
        self.trials = 0
        self.refused: set[str] = set()

    def run(self) -> FixedKernel:
        before = current = self._measured(self.edits)
        self._tell(self.edits, before, (), "")
        while self.trials < MOST_TRIALS and (found := self._better(current)) is not None:
            current = found
        current = self._depths(current, before)
        return FixedKernel(
            self.edits.apply(self.text), tuple(self.changes), before.latency, current.latency,
            before.fifo_bits, current.fifo_bits, self.trials,
        )  # fmt: skip

    def _measured(self, edits: SourceEdits) -> _Measured:
        with tempfile.TemporaryDirectory(prefix="penstock-fix-") as scratch:
            main = lay_out(self.sources, edits.apply(self.sources.texts[self.sources.main]), Path(scratch))
            kernel = read_kernel(main, self.top)
        timed = time_kernel(kernel, self.delays)
        result = simulate(timed.design, VITIS)
        return _Measured(timed, None if result.deadlock is not None else result.latency)

    def _tried(self, what: str, edits: SourceEdits | None, current: _Measured) -> _Measured | None:
        if edits is None or what in self.refused or self.trials >= MOST_TRIALS or self._is_enough():
            return None
        self.trials += 1
        why = ""
        try:
            found = self._measured(edits)
        except PenstockError as error:
            found, why = None, error.one_line()
        self._tell(edits, found, (*self.changes, what), why)
        if found is None or not found.faster_than(current):
            self.refused.add(what)
            return None
        self.edits = edits
        self.changes.append(what)
        return found

    def _is_enough(self) -> bool:
        return self.most is not None and self.told >= self.most

    def _tell(self, edits: SourceEdits, found: _Measured | None, changes: tuple[str, ...], why: str) -> None:
        latency = found.latency if found else None
        if found and latency is None:
            why = "it stops for ever"
        area = asdict(area_of(found.timed, self.delays)) if found else {}
        self.watch(TriedSource(self.told, latency, None, area, 1, (), changes, why, edits.apply(self.text)))
        self.told += 1

    # pipelines and memories

    def _better(self, current: _Measured) -> _Measured | None:
        """The kernel after the first change that makes it faster, or None if there is none."""
        for what, edits in self._candidates(current.timed):
            found = self._tried(what, edits, current)
            if found is not None:
                return found
        return None

    def _candidates(self, timed: Timed) -> Iterator[tuple[str, SourceEdits | None]]:
        slow = [
            (item, found) for item, found in timed.schedules.items() if isinstance(item, Pipeline) and found.ii > 1
        ]  # fmt: skip
        for item, found in sorted(slow, key=lambda pair: -pair[0].iterations * pair[1].ii):
            reachable = max((limit.ii for limit in found.limits), default=1)
            if item.directive and reachable < item.target:
                yield self._interval(item, reachable)
            for limit in found.limits:
                if limit.array is not None and limit.ii == found.ii:
                    yield from self._banks(timed, limit.array, limit.ii)

    def _interval(self, item: Pipeline, reachable: int) -> tuple[str, SourceEdits | None]:
        what = f"{item.directive}: pipeline II={item.target} of {item.name} -> II={reachable}"
        return what, self._option(item.directive, "II", reachable)

    def _banks(self, timed: Timed, array: KernelArray, bound: int) -> Iterator[tuple[str, SourceEdits | None]]:
        """More banks along one dim, the fewest first. What is a port of an interface keeps its form."""
        if array.storage or array.reshape or (array.argument and array.name in timed.kernel.interfaces):
            return
        for dim, (length, (way, factor)) in enumerate(zip(array.dims, array.factors(), strict=True)):
            if factor >= length:
                continue
            for more in (1, 2, 4, 8, 16) if way == "block" else (2, 4, 8, 16):
                wanted = factor * more
                if more > 2 * bound or wanted > min(length, _MOST_FACTOR):
                    break
                pragma = f"array_partition variable={array.name} cyclic factor={wanted} dim={dim + 1}"
                if dim in array.directives:
                    place = array.directives[dim]
                    edits = self._option(place, "factor", wanted)
                    if way == "block" and edits is not None:
                        edits = edits.word(self.text, place, "block", "cyclic")
                    before = f"{way} factor {factor} -> "
                    yield f"{place}: {array.name} dim {dim + 1} {before}{'cyclic ' * (way == 'block')}{wanted}", edits
                else:
                    place = timed.kernel.body_at if array.argument else array.where
                    edits = self._pragma(place, pragma, behind="{" if array.argument else ";")
                    yield f"{place}: #pragma HLS {pragma}", edits

    def _option(self, place: str, key: str, value: int) -> SourceEdits | None:
        return self.edits.option(self.text, place, key, str(value)) if self._is_here(place) else None

    def _pragma(self, place: str, pragma: str, *, behind: str) -> SourceEdits | None:
        return self.edits.pragma(self.text, place, pragma, behind=behind) if self._is_here(place) else None

    def _is_here(self, place: str) -> bool:
        return bool(place) and file_of(place) == self.file

    # FIFOs

    def _depths(self, current: _Measured, before: _Measured) -> _Measured:
        """Every FIFO as deep as it is filled at most, or little more, if the kernel is then no slower than it was.

        Nor do they hold more then, unless it is faster with that.
        """
        lines, _ = fifos_of(current.timed)
        needed: dict[tuple[str, str, str], tuple[int, int]] = {}
        for line in lines:
            streams = current.timed.channels[line.name]
            assert isinstance(streams, KernelStream)
            # a stream of structs is a stream a field, under one pragma
            key = streams.directive, streams.where, streams.name.partition(".")[0]
            _, most = needed.get(key, (0, 0))
            needed[key] = streams.depth, max(most, line.needed)
        for spare in _SPARE:
            edits, changes = self._with_depths({key: (old, most + spare) for key, (old, most) in needed.items()})
            if not changes or self._is_enough():
                continue
            found = self._measured(edits)
            self._tell(edits, found, (*self.changes, *changes), "")
            worth = found.fifo_bits <= current.fifo_bits or found.faster_than(current)
            if worth and found.latency is not None and (before.latency is None or found.latency <= before.latency):
                self.edits = edits
                self.changes += changes
                return found
        return current

    def _with_depths(self, needed: dict[tuple[str, str, str], tuple[int, int]]) -> tuple[SourceEdits, list[str]]:
        edits, changes = self.edits, list[str]()
        for (directive, where, name), (old, new) in needed.items():
            made = None
            if old != new and directive and self._is_here(directive):
                made = edits.option(self.text, directive, "depth", str(new))
            elif old != new and not directive and self._is_here(where):
                made = edits.pragma(self.text, where, f"stream variable={name} depth={new}", behind=";")
            if made is not None:
                edits = made
                changes.append(f"{directive or where}: depth of {name} {old} -> {new}")
        return edits, changes
