"""A board's bitstream with the open tools: yosys, nextpnr-ecp5, ecppack. Its figures are `implemented`.

Kept by content: what was built once is read the next time. A design that does not fit or misses its clock is a typed
failure with the figures that decide it; a failure is kept too, so that it costs nothing to hear of it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.compiler.backend.rtl.shell import BoardDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.package.bitstream import Bitstream, ChipUsage
from penstock.compiler.platforms import load_platform
from penstock.profiling.cache import CacheStore, content_key, runs_folder
from penstock.profiling.open_rtl.device import Device, device_of
from penstock.profiling.open_rtl.failures import failed
from penstock.profiling.open_rtl.tools import Tool, find_ecppack, find_nextpnr_ecp5, find_yosys
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolOutcome, ToolResult, ToolRunner, clean_environment
from penstock.profiling.work_folder import private_folder

REVISION = 1
SYNTHESIS = (
    "read_verilog -sv -defer -DPENSTOCK_ECP5 {files}",
    "synth_ecp5 -top {top} -json netlist.json",
    "write_verilog -noattr -norename netlist.v",
)
SEEDS = (1, 2, 3)
"""Placements that are tried before a clock counts as missed."""
_ROW = re.compile(r"^Info:\s+(?P<name>[A-Za-z]\w*):\s+(?P<used>\d+)/\s*(?P<available>\d+)\s+\d+%", re.MULTILINE)
_CROWDED_HINT = "unroll less (--max-lanes): what fills less of the chip is routed much sooner"
_FULLEST = 3
_OVERFULL_HINT = "unroll less, keep fewer weights on chip, or choose a larger device"


@dataclass(frozen=True)
class BitstreamRun:
    """A bitstream and what it took; the times are those of the run that made it."""

    made: Bitstream
    synthesis_s: float
    place_and_route_s: float
    pack_s: float
    cached: bool = False

    @property
    def seconds(self) -> float:
        return self.synthesis_s + self.place_and_route_s + self.pack_s


def build_bitstream(
    design: BoardDesign,
    tools: ToolRunner | None = None,
    *,
    seeds: tuple[int, ...] = SEEDS,
    timeout: float = 3600.0,
    progress: Callable[[str], None] = lambda _: None,
) -> BitstreamRun:
    """The bitstream of a board's design, from the cache or built now. `progress` hears which tool runs."""
    yosys, nextpnr, ecppack = find_yosys(), find_nextpnr_ecp5(), find_ecppack()
    versions = tuple((tool.name, tool.version) for tool in (yosys, nextpnr, ecppack))
    device = device_of(load_platform(design.board.name))
    key = content_key("bitstream", REVISION, design.digest, design.constraints, SYNTHESIS, seeds, versions)
    store = CacheStore("bitstreams", keep=200)
    with store.making(key):
        if (known := _read(store, key)) is not None:
            return known
        with private_folder(runs_folder()) as folder:
            durations = _Durations(design.board.name)
            flow = _Flow(folder, design, device, tools or ToolRunner(), timeout, progress, durations)
            try:
                run = flow.run(yosys, nextpnr, ecppack, seeds, versions)
            except PenstockError as error:
                if error.code in _DECIDED:
                    store.write(key, {"failure": error.to_dict()})
                raise
        store.write(key, _document(run))
    return run


_DECIDED = ("bitstream-timing", "bitstream-fit")


@dataclass(frozen=True)
class _Placement:
    """One run of nextpnr: the clock that it reached, and its configuration."""

    fmax_mhz: float
    seed: int
    config: str
    usage: tuple[ChipUsage, ...]


@dataclass(frozen=True)
class _Durations:
    """How long each tool took the last time that it ran for this board, of whatever design that was."""

    board: str

    def said(self, tool: Tool) -> str:
        seconds = self._store.read(self._key(tool))
        return f" ({seconds:.0f} s the last time)" if isinstance(seconds, int | float) else ""

    def keep(self, tool: Tool, seconds: float) -> None:
        self._store.write(self._key(tool), round(seconds, 1))

    @property
    def _store(self) -> CacheStore:
        return CacheStore("durations", keep=100)

    def _key(self, tool: Tool) -> str:
        return content_key("duration", self.board, tool.name)


@dataclass(frozen=True)
class _Flow:
    """The tools in one folder. All paths are relative to it: YoWASP takes no others."""

    folder: Path
    design: BoardDesign
    device: Device
    tools: ToolRunner
    timeout: float
    progress: Callable[[str], None]
    durations: _Durations

    def run(
        self, yosys: Tool, nextpnr: Tool, ecppack: Tool, seeds: tuple[int, ...], versions: tuple[tuple[str, str], ...]
    ) -> BitstreamRun:
        rtl = self.design.rtl
        rtl.write(self.folder)
        script = "\n".join(SYNTHESIS).format(files=" ".join(rtl.files), top=rtl.top)
        (self.folder / "synth.ys").write_text(script + "\n")
        (self.folder / "board.lpf").write_text(self.design.constraints)
        synthesis = self._start("synthesising with yosys", yosys, "-q", "-s", "synth.ys")
        self._needs("netlist.json", "yosys", synthesis)
        netlist = self._needs("netlist.v", "yosys", synthesis)
        best, routing_s = self._place(nextpnr, seeds)
        (self.folder / "best.config").write_text(best.config)
        packing = self._start("packing with ecppack", ecppack, "--compress", "best.config", "board.bit")
        self._needs("board.bit", "ecppack", packing)
        made = Bitstream(
            bit=(self.folder / "board.bit").read_bytes(), config=best.config, netlist=netlist, fmax_mhz=best.fmax_mhz,
            clock_mhz=self.design.clock_mhz, seed=best.seed, usage=best.usage, tools=versions,
        )  # fmt: skip
        return BitstreamRun(made, synthesis.seconds, routing_s, packing.seconds)

    def _place(self, nextpnr: Tool, seeds: tuple[int, ...]) -> tuple[_Placement, float]:
        """The first placement that meets the clock; if none does, the error names the best."""
        best: _Placement | None = None
        seconds = 0.0
        for seed in seeds:
            placement, took = self._place_once(nextpnr, seed)
            seconds += took
            if best is None or placement.fmax_mhz > best.fmax_mhz:
                best = placement
            if best.fmax_mhz >= self.design.clock_mhz:
                return best, seconds
        assert best is not None, "at least one seed is tried"
        raise PenstockError(
            code="bitstream-timing", what=f"the design misses its clock of {self.design.clock_mhz:g} MHz",
            where=self.design.board.name,
            limit=f"the best of {len(seeds)} placements reaches {best.fmax_mhz:.1f} MHz",
            hint=f"ask for a clock of at most {_rounded_down(best.fmax_mhz):g} MHz, or unroll less",
        )  # fmt: skip

    def _place_once(self, nextpnr: Tool, seed: int) -> tuple[_Placement, float]:
        for name in ("report.json", "board.config"):
            (self.folder / name).unlink(missing_ok=True)
        attempt = "" if seed == SEEDS[0] else f", placement {seed}"
        result = self._start(
            f"placing and routing with nextpnr{attempt}", nextpnr,
            *self.device.options, "--json", "netlist.json", "--lpf", "board.lpf", "--textcfg", "board.config",
            "--report", "report.json", "--freq", f"{self.design.clock_mhz:g}", "--seed", str(seed),
            "--timing-allow-fail",
        )  # fmt: skip
        if not (self.folder / "report.json").is_file():
            self._refuse_if_too_full(result)
        report = self._needs("report.json", "nextpnr-ecp5", result)
        fmax, usage = read_report(report)
        return _Placement(fmax, seed, self._needs("board.config", "nextpnr-ecp5", result), usage), result.seconds

    def _refuse_if_too_full(self, result: ToolResult) -> None:
        """nextpnr lists what is used of what there is before it gives up, or finds no ways for the last wires."""
        log = result.stderr.read_text(errors="replace") + result.stdout.read_text(errors="replace")
        rows = {m["name"]: (int(m["used"]), int(m["available"])) for m in _ROW.finditer(log)}
        over = {name: counts for name, counts in rows.items() if counts[0] > counts[1]}
        if over:
            raise PenstockError(
                code="bitstream-fit", what="the design does not fit the device", where=self.design.board.name,
                limit=", ".join(
                    f"{used} {name} of {available}, {used - available} too many"
                    for name, (used, available) in over.items()
                ),
                hint=_OVERFULL_HINT,
            )  # fmt: skip
        if rows and result.outcome is ToolOutcome.TIMEOUT:
            fullest = sorted(rows, key=lambda name: rows[name][0] / rows[name][1], reverse=True)[:_FULLEST]
            raise PenstockError(
                code="bitstream-time", what=f"it was not placed and routed within {result.seconds / 60:.0f} minutes",
                where=self.design.board.name,
                limit="it takes " + ", ".join(f"{rows[name][0]} {name} of {rows[name][1]}" for name in fullest),
                hint=_CROWDED_HINT,
            )  # fmt: skip

    def _start(self, what: str, tool: Tool, *arguments: str) -> ToolResult:
        self.progress(f"{what} for {self.design.board.name}{self.durations.said(tool)}")
        environment = clean_environment(**tool.env)
        command = (*tool.argv, *arguments)
        logs = self.folder / "logs"
        result = self.tools.run(ToolCommand(command, self.folder, logs, environment, timeout=self.timeout))
        if result.ok:
            self.durations.keep(tool, result.seconds)
        return result

    def _needs(self, name: str, tool: str, result: ToolResult) -> str:
        """What a tool wrote. YoWASP's exit codes are not to be trusted: what counts is the file."""
        path = self.folder / name
        if not path.is_file() or not path.stat().st_size:
            if not result.ok:
                raise failed(tool, result, "see the end of its log")
            raise ProfilingError(
                "report-missing", what=f"{tool} wrote no {name}", where=tool, hint="see the end of its log",
                log_tail=result.tail,
            )  # fmt: skip
        return path.read_text(errors="replace") if path.suffix != ".bit" else ""


def read_report(text: str) -> tuple[float, tuple[ChipUsage, ...]]:
    """The slowest clock and the used resources of nextpnr's report."""
    try:
        document = json.loads(text)
        fmax = min(float(clock["achieved"]) for clock in document["fmax"].values())
        usage = tuple(
            ChipUsage(name, int(row["used"]), int(row["available"]))
            for name, row in sorted(document["utilization"].items())
            if row["used"]
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProfilingError(
            "report-unreadable", what="nextpnr's report names no clock or no resources", where="nextpnr-ecp5",
            hint="use the version of constraints.txt", log_tail=text[:2000],
        ) from error  # fmt: skip
    return fmax, usage


def _rounded_down(mhz: float) -> float:
    return mhz // 1 if mhz >= 10 else mhz // 0.1 / 10


def _document(run: BitstreamRun) -> dict[str, Any]:
    document = asdict(run)
    document["made"]["bit"] = run.made.bit.hex()
    return document


def _read(store: CacheStore, key: str) -> BitstreamRun | None:
    document = store.read(key)
    if not isinstance(document, dict):
        return None
    if "failure" in document:
        raise PenstockError(**document["failure"])
    made = document["made"]
    usage = tuple(ChipUsage(**row) for row in made["usage"])
    tools = tuple((name, version) for name, version in made["tools"])
    bitstream = Bitstream(**{**made, "bit": bytes.fromhex(made["bit"]), "usage": usage, "tools": tools})
    seconds = {name: document[name] for name in ("synthesis_s", "place_and_route_s", "pack_s")}
    return BitstreamRun(bitstream, **seconds, cached=True)
