"""The report of a package, as typed records: report.json is their JSON, docs/report.schema.json their schema.

A figure that nobody measured is None, never 0, and every section with a figure names its evidence.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Count, Cycles, From, LeftOut, Record, Share, check_evidence
from penstock.compiler.package.report_elements import ElementInfo, PlacementInfo, WrittenInfo
from penstock.compiler.package.report_judged import Accuracy, Language, WholeCheck
from penstock.compiler.package.report_placement import CrossingInfo, DieInfo, PlacementReport, StoredInfo
from penstock.compiler.package.report_search import (
    BoundInfo,
    EqualisationInfo,
    ImportanceInfo,
    NeighbourInfo,
    ProfileUse,
    RungErrorInfo,
    WhyInfo,
)
from penstock.compiler.package.report_synthesis import ChipUse, LoopInfo, OtherLoop, SynthesisInfo, SynthesisPass
from penstock.compiler.package.report_timing import (
    KernelTiming,
    PathStep,
    SimulatedRun,
    StallInfo,
    TaskTiming,
    TimeFigures,
    Timing,
)

__all__ = [
    "Accuracy", "Amount", "BandwidthUse", "BitstreamInfo", "BoundInfo", "ChannelInfo", "ChipUse", "ConverterInfo",
    "CrossingInfo", "CsimCheck", "DesignInfo", "DieInfo", "EqualisationInfo", "ExplorationReport", "HostInfo",
    "HostOperation", "ImportanceInfo", "KernelInfo", "KernelResources", "KernelTiming", "Language", "LeftOut",
    "LevelCheck", "LoopInfo", "ModelInfo", "NeighbourInfo", "OtherLoop", "PathStep", "PlacedPart", "PlacementReport",
    "PlatformInfo", "PortInfo", "Product", "ProfileUse", "PytorchCheck", "Record", "Report", "ResourceUse", "RtlCheck",
    "RungErrorInfo", "SearchResult", "SimulatedRun", "StallInfo", "StoredInfo", "SynthesisInfo", "SynthesisPass",
    "TaskTiming", "TimeFigures", "Timing", "TrialInfo", "Verify", "WholeCheck", "WhyInfo",
]  # fmt: skip


class PortInfo(Record):
    name: str
    shape: tuple[int, ...]
    dtype: str = Field(description="what crosses the link to the accelerator")
    quantised: bool = Field(description="the host converts from and to float32")


class ModelInfo(Record):
    name: str
    digest: str = Field(description="sha256 over graph, signature and parameters as they were compiled")
    layers: int
    parameters: int = Field(description="number of weights")
    quantisation: str | None = Field(description="for example w8a8; null: as the model came")
    inputs: tuple[PortInfo, ...]
    outputs: tuple[PortInfo, ...]


class PlatformInfo(Record):
    name: str
    title: str
    part: str
    dies: int


class KernelInfo(Record):
    """How one tensor operation is walked; tuples are indexed by its iteration dims."""

    name: str
    operation: str = Field(description="what it computes, for people")
    trips: tuple[int, ...]
    tile: tuple[int, ...]
    unroll: tuple[int, ...]
    order: tuple[int, ...]
    weights: str = Field(description="rom: on the chip; stream: in external memory")


class ChannelInfo(Record):
    """An edge of the dataflow. An empty source or target is the host's side."""

    name: str
    source: str
    target: str
    kind: str = Field(description="fifo, blocks or memory")
    token: str = Field(description="the type of what one push carries")
    width_bits: int | None
    depth: int | None = Field(description="tokens or blocks that it holds")
    tokens: Count = Field(default=None, description="pushed in one run")
    high_water: Count = Field(default=None, description="modelled: the depth at which its writer never waits")
    evidence: From = None
    held: Count = Field(default=None, description="simulated: slots that were held at most; null: not simulated")
    unsized_depth: Count = Field(default=None, description="a FIFO's depth by closed forms, without simulation")
    saved_bits: int | None = Field(default=None, description="what sizing took off the unsized depth; null: no FIFO")
    memory: str = Field(default="", description="what it is built of; empty: left to the tools")


class ConverterInfo(Record):
    """Where two neighbours want a tensor in different orders: what is kept in between."""

    name: str
    source: str = Field(description="the type of the stream that comes")
    target: str = Field(description="the type of the stream that goes")
    method: str = Field(description="one nest, or two blocks that are filled and emptied in turn")
    buffer_elements: int
    buffer_bits: int
    live_elements: Count = Field(description="the most that are alive at once; null: too many to count")


class DesignInfo(Record):
    digest: str
    clock_mhz: float
    kernels: tuple[KernelInfo, ...]
    channels: tuple[ChannelInfo, ...]
    converters: tuple[ConverterInfo, ...] = ()
    mapping: tuple[str, ...] = Field(default=(), description="how a task program's instances share elements, by steps")
    elements: tuple[ElementInfo, ...] = Field(
        default=(),
        description="of a task program whose instances share some, have bodies by hand or stand on a grid",
    )
    placement: PlacementInfo | None = Field(default=None, description="of a task program that names a grid")
    written: tuple[WrittenInfo, ...] = Field(default=(), description="where each kernel stands in the user's model")


class LevelCheck(Record):
    """One level of the compiler executed and compared with another."""

    level: str
    against: str
    equal: bool = Field(description="every value is what is promised: its bits, or within the tolerance of the note")
    values: int
    bits_equal: Count = None
    note: str = ""


class CsimCheck(Record):
    """The emitted C++ against the interpreter, bit for bit."""

    equal: bool | None
    values: Count = None
    bits_equal: Count = None
    samples: Count = None
    evidence: From = None
    note: str = ""


class RtlCheck(Record):
    """The SystemVerilog, simulated with data, against the interpreter and the emitted C++; and the times it took."""

    ok: bool | None = Field(description="every value is within the tolerance, or bit for bit where that is 0")
    values: Count = None
    bits_equal: Count = Field(default=None, description="values that are the same to the last bit")
    within_tolerance: Count = Field(default=None, description="those, and what the tolerance forgives")
    samples: Count = None
    max_abs_error: float | None = None
    tolerance: float | None = Field(default=None, description="of the largest output; 0: bit for bit")
    evidence: From = None
    times: TimeFigures | None = None
    note: str = ""


class ProbeCheck(Record):
    """What the package's self-test runs besides the model's samples: inputs that make every weight matter."""

    frames: int
    values: int
    bytes: int = Field(description="of inputs and answers in the package, before compression")


class PytorchCheck(Record):
    """The accelerator's dequantised answers against PyTorch's."""

    max_abs_error: float | None
    tolerance: float | None
    ok: bool | None
    samples: Count = None
    evidence: From = None
    note: str = ""
    reference: str = Field(default="PyTorch", description="who gave the answers that are compared with")


class Verify(Record):
    csim: CsimCheck
    pytorch: PytorchCheck
    levels: tuple[LevelCheck, ...] = ()
    lengths: tuple[LevelCheck, ...] = Field(default=(), description="the same at other sizes that a call may say")
    whole: WholeCheck | None = Field(default=None, description="null: nothing runs on the host")
    rtl: RtlCheck | None = Field(default=None, description="null: no SystemVerilog was run")
    probes: ProbeCheck | None = Field(default=None, description="null: the model has no inputs to vary")


class Amount(Record):
    used: Count
    available: Count = Field(description="what the platform's shell leaves to a design")
    limit: Count = Field(description="the most that still routes")
    share: Share


class KernelResources(Record):
    kernel: str
    lut: Count = None
    ff: Count = None
    dsp: Count = None
    bram18: Count = None
    uram: Count = None
    evidence: From = None


class BandwidthUse(Record):
    """External memory at the design's own pace: traffic of a run by the interval between two inputs."""

    memory: str = Field(description="the one that serves all ports")
    used_gb_s: float = Field(ge=0)
    sustained_gb_s: float = Field(gt=0, description="what it delivers for long")
    share: Share
    banks: tuple[float, ...] = Field(
        default=(), description="of each bank in use, the part of what it sustains that is taken; the fullest first"
    )
    evidence: Evidence = Field(description="where the interval comes from")


class ResourceUse(Record):
    evidence: From
    lut: Amount
    ff: Amount
    dsp: Amount
    bram18: Amount
    uram: Amount
    kernels: tuple[KernelResources, ...] = ()
    bandwidth: BandwidthUse | None = Field(
        default=None, description="null: the platform has no memory of its own, or no interval is known"
    )
    note: str = ""

    @model_validator(mode="after")
    def _evidence_is_named(self) -> Self:
        used = [self.lut.used, self.ff.used, self.dsp.used, self.bram18.used, self.uram.used]
        check_evidence(self.evidence, used)
        return self


class TrialInfo(Record):
    number: int
    state: str = Field(description="complete, infeasible, failed or pruned")
    latency_cycles: Cycles = None
    resource_share: Share = Field(default=None, description="the largest share of any resource's limit")
    values: dict[str, float] = Field(default={}, description="what the search kept small, by its figure")
    params: dict[str, int | str | bool] = Field(default={}, description="what the search decided")
    evidence: From = None
    on_front: bool = Field(default=False, description="no other trial is better in every objective")
    chosen: bool = False
    note: str = Field(default="", description="why it was passed over, if it was")
    measured: tuple[TimeFigures, ...] = Field(default=(), description="by stronger evidence than the search had")


class ExplorationReport(Record):
    trials: tuple[TrialInfo, ...]
    complete: int
    infeasible: int
    failed: int
    sampler: str = ""
    seed: int | None = None
    objectives: tuple[str, ...] = Field(default=(), description="what was kept small, the most important first")
    limits: tuple[str, ...] = Field(default=(), description="hard limits that the user gave")
    chosen_by: From = None
    bound: BoundInfo | None = Field(default=None, description="null: it could not be worked out")
    hypervolume: float | None = Field(
        default=None,
        description="of the box from the best to the worst of each objective among the trials that keep the limits, by "
        "logarithms: what the front beats; null: there is nothing between them",
    )
    modelled: int = Field(default=0, description="settings that were looked at before the first trial")
    stopped: str = Field(default="", description="why the search ended before all trials that it might have made")
    why: WhyInfo | None = None
    rung_errors: tuple[RungErrorInfo, ...] = ()
    correction: str = Field(default="", description="what the weaker rung's figures were corrected by, to be promoted")
    profiles: ProfileUse | None = None
    sizing: str = Field(default="", description="what FIFO sizing left undone, where its budget ended first")
    for_one: str = Field(default="", description="what FIFOs would hold for inputs that follow, and do not")
    equalisation: EqualisationInfo | None = Field(default=None, description="null: no FIFO costs time")
    left_out: tuple[LeftOut, ...] = Field(default=(), description="explanations that could not be made, and why")


class SearchResult(Record):
    """What `penstock explore --json` prints."""

    design: dict[str, Any] = Field(description="the best design's record, for penstock compile --design")
    exploration: ExplorationReport


class HostOperation(Record):
    operation: str = Field(description="its name in PyTorch")
    layer: str
    why: str = Field(description="why it is not on the accelerator")


class HostInfo(Record):
    """What of the model runs on the host through PyTorch. The sections above are about the accelerator in between."""

    inputs: tuple[PortInfo, ...] = Field(description="of the whole model")
    outputs: tuple[PortInfo, ...]
    before: tuple[HostOperation, ...]
    between: tuple[tuple[HostOperation, ...], ...] = Field(
        default=(), description="after each call of the accelerator but the last, where one answer takes several"
    )
    after: tuple[HostOperation, ...]
    bytes: int = Field(description="of the tensors that these operations read")

    @property
    def stages(self) -> list[tuple[str, tuple[HostOperation, ...]]]:
        """All of them by when they run, in words."""
        calls = enumerate(self.between, 1)
        middle = [(f"between calls {call} and {call + 1} of", operations) for call, operations in calls]
        return [("before", self.before), *middle, ("after", self.after)]


class PlacedPart(Record):
    """Cells of the netlist that was placed; what placing adds, to carry signals through, is in no part."""

    lut: int
    ff: int
    dsp: int
    bram18: int


class BitstreamInfo(Record):
    """The bitstream for a board: what place and route made of the design, or why there is none."""

    board: str
    part: str
    clock_mhz: float
    path: str | None = Field(description="in the package; null: not built")
    target: str = Field(default="", description="hw or hw_emu where v++ linked it; empty: the open route")
    fmax_mhz: float | None = Field(default=None, description="the fastest clock that the placed design meets")
    reached_mhz: float | None = Field(default=None, description="the clock that v++ says the kernel runs at")
    worst_slack_ns: float | None = Field(default=None, description="of the routed chip, shell and all")
    usage: tuple[ChipUse, ...] = ()
    core: PlacedPart | None = Field(default=None, description="what of the placed netlist is the design itself")
    shell: PlacedPart | None = Field(default=None, description="and what the board's shell around it")
    notes: tuple[str, ...] = ()
    evidence: From = None
    failure: str = Field(default="", description="why there is none")


class Product(Record):
    name: str = "penstock"
    version: str


class Report(Record):
    """Everything that is known of one accelerator, and how it is known."""

    schema_version: Literal[1] = 1
    product: Product
    name: str
    model: ModelInfo
    platform: PlatformInfo
    design: DesignInfo
    verify: Verify
    timing: Timing
    resources: ResourceUse
    accuracy: Accuracy | None = Field(description="null: the model came without a held-out set")
    language: Language | None = Field(default=None, description="null: the model came without text")
    exploration: ExplorationReport | None = Field(description="null: the design was given, not searched for")
    host: HostInfo | None = Field(default=None, description="null: the accelerator does all of the model")
    tools: dict[str, str] = Field(description="versions of the tools that took part")
    placement: PlacementReport | None = Field(default=None, description="null: left to the tools")
    synthesis: SynthesisInfo | None = Field(default=None, description="null: AMD's tools did not measure it")
    bitstream: BitstreamInfo | None = Field(default=None, description="null: none was asked for")
    left_out: tuple[LeftOut, ...] = Field(default=(), description="explanations that could not be made, and why")
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        return self.model_dump_json(indent=1) + "\n"

    def evidence(self) -> dict[str, Evidence]:
        """Where each group of figures comes from, by its path; what was not measured is left out."""
        found: dict[str, Evidence | None] = {
            "verify.csim": self.verify.csim.evidence,
            "verify.rtl": self.verify.rtl.evidence if self.verify.rtl else None,
            "verify.pytorch": self.verify.pytorch.evidence,
            "verify.whole": self.verify.whole.evidence if self.verify.whole else None,
            "timing": self.timing.evidence,
            "resources": self.resources.evidence,
            "synthesis": self.synthesis.evidence if self.synthesis else None,
            "placement": self.placement.evidence if self.placement else None,
            "accuracy": self.accuracy.evidence if self.accuracy else None,
            "language": self.language.evidence if self.language else None,
            "bitstream": self.bitstream.evidence if self.bitstream else None,
        }
        return {path: evidence for path, evidence in found.items() if evidence is not None}
