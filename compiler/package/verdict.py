"""What is known of a model before any search; `penstock check --json` prints it as docs/check.schema.json says."""

from __future__ import annotations

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Record
from penstock.compiler.package.report import HostInfo, PortInfo


class Refusal(Record):
    """Why the model cannot be compiled."""

    code: str
    what: str
    where: str = Field(default="", description="the layer, the file or the option")
    limit: str = ""
    hint: str = ""


class AcceleratorOperation(Record):
    layer: str
    trips: tuple[int, ...] = Field(description="of its loops, outermost first")
    reduces: bool
    error: float | None = Field(
        default=None, description="quantised: how far its numbers are from the float model's, of the largest of them"
    )
    error_added: float | None = Field(default=None, description="of that, what the layers that it reads had not")


class ModelSize(Record):
    """Of what the accelerator computes; weights as they are stored, quantised where that was asked for."""

    parameters: int
    weight_bytes: int
    operations: int
    work: int = Field(description="how often the bodies of all operations run for one input")
    weights_in: str = Field(description="rom: on the chip; stream: in external memory")
    on_chip_bytes: int = Field(description="of block RAM and UltraRAM that a design for the platform may take")


class Estimate(Record):
    """The first design that a search would try. A search goes on from there."""

    evidence: Evidence
    latency_cycles: int
    latency_us: float
    shares: dict[str, float] = Field(description="of the platform's limits, by resource")
    fits: bool


class ModelVerdict(Record):
    model: str
    name: str = ""
    platform: str
    clock_mhz: float
    quantize: str | None
    compiles: bool = Field(description="nothing that is known before a search keeps it from being compiled")
    refusals: tuple[Refusal, ...] = ()
    inputs: tuple[PortInfo, ...] = Field(default=(), description="of the accelerator")
    outputs: tuple[PortInfo, ...] = ()
    size: ModelSize | None = Field(default=None, description="null: it cannot be imported")
    accelerator: tuple[AcceleratorOperation, ...] = ()
    host: HostInfo | None = Field(default=None, description="null: the accelerator does all of the model")
    estimate: Estimate | None = Field(default=None, description="null: it has none; a note says why")
    notes: tuple[str, ...] = ()
    seconds: float

    def to_json(self) -> str:
        return self.model_dump_json(indent=1) + "\n"
