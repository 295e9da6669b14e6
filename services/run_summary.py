"""What a run found, step by step: the record that steps write and that the service reads.

Each step writes the fields that it knows; the database merges them into what is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

Figure = int | float
Short = Annotated[str, Field(max_length=2000)]


class Summarised(BaseModel):
    """A record that other versions may have written: what this one does not know is kept as it is."""

    model_config = ConfigDict(frozen=True, extra="allow")


class FigureOrigin(Summarised):
    """A setting that was taken over from an earlier run."""

    run: str
    trial: int


class Difference(Summarised):
    """A figure that is not what it was."""

    figure: str
    then: Any
    now: Any


class Replayed(Summarised):
    """A trial of another run that was evaluated again."""

    run: str
    trial: int
    equal: bool
    differs: list[Difference]
    changed: list[str]
    evidence: str


class LongWait(Summarised):
    """A task that waits for a channel."""

    task: str
    channel: str
    cause: str
    cycles: int


class DesignLook(Summarised):
    """What is known of a design at a glance; `refused` says why nothing is. Its FIFOs may be deeper than a run's."""

    refused: str = ""
    evidence: str | None = None
    latency_cycles: Figure | None = None
    latency_us: Figure | None = None
    interval_cycles: Figure | None = None
    used: dict[str, int] | None = None
    limits: dict[str, int] | None = None
    used_evidence: str | None = None
    fits: bool | None = None
    explanation: str = ""
    waits: list[LongWait] = []
    digest: str = ""


class WhatIf(Summarised):
    """A design of another run with changes, beside that design as it is: both looked at in the same way."""

    run: str
    changes: dict[str, Any]
    before: DesignLook
    after: DesignLook
    seconds: float


class ArrayProgramFound(Summarised):
    """The program of an array for one shape: what it takes and does."""

    name: Short
    kernel: Short
    blocks: dict[Short, int]
    cycles: int
    evidence: Short
    loading_cycles: int
    bound_cycles: int
    multipliers_used_pct: float
    plans_tried: int
    program: Annotated[list[Short], Field(max_length=64)]
    cpp_equal: bool | None = None


class ArrayOnPlatform(Summarised):
    """How an array was found: its cycles for all shapes, what none is below, used and available of each resource."""

    platform: Short
    cycles: int
    evidence: Short
    considered: int
    bound: int
    bound_reason: Short
    area: dict[Short, Annotated[list[int], Field(min_length=2, max_length=2)]]
    area_evidence: Short
    lines: Annotated[list[Short], Field(max_length=64)]


class ArrayFound(Summarised):
    """An array of cores for a kernel in several shapes."""

    array: Short
    rows: int
    columns: int
    multipliers: int
    clock_mhz: float
    programs: Annotated[list[ArrayProgramFound], Field(min_length=1, max_length=64)]
    found: ArrayOnPlatform | None = None


class LayersByOneStart(Summarised):
    """All layers that share the accelerator, where one start runs them."""

    layers: int
    latency_cycles: Figure
    latency_us: float
    evidence: Short


class RunSummary(Summarised):
    """All of it; what no step has written is None."""

    # explore
    warm_start: list[FigureOrigin] | None = None
    modelled: int | None = None
    trials_planned: int | None = None
    stopped: str | None = None
    # select
    chosen_trial: int | None = None
    evidence: str | None = None
    latency_cycles: Figure | None = None
    latency_us: Figure | None = None
    initial_delay_cycles: Figure | None = None
    interval_cycles: Figure | None = None
    modelled_latency_cycles: Figure | None = None
    retimed_latency_cycles: Figure | None = None
    fifo_bits: Figure | None = None
    unsized_fifo_bits: Figure | None = None
    normal_fifo_bits: Figure | None = None
    """Of FIFOs that cost no time, where the chosen ones may; the next is what a run takes with those."""
    normal_latency_cycles: Figure | None = None
    resource_share: Figure | None = None
    share_evidence: str | None = None
    dies: int | None = None
    trials: int | None = None
    on_front: int | None = None
    fallback: str | None = None
    why: list[str] | None = None
    bound: Figure | None = None
    bound_reason: str | None = None
    gap_pct: float | None = None
    left_out: list[str] | None = None
    rung_errors: list[dict[str, Any]] | None = None
    measurements: str | None = None
    # package
    package: str | None = None
    digest: str | None = None
    bitstream: str | None = None
    float_accuracy: float | None = None
    accelerator_accuracy: float | None = None
    all_layers: LayersByOneStart | None = None
    # a replay, which is a run of its own
    replay: Replayed | None = None
    # a question, likewise
    what_if: WhatIf | None = None
    # explore, of a run that was given its design: whose it is
    design_of: str | None = None
    # a check, likewise: as docs/check.schema.json says
    check: dict[str, Any] | None = None
    # an array of cores, likewise
    array: ArrayFound | None = None

    def written(self) -> dict[str, Any]:
        """What a step has to say; the fields that it does not know are left as they are."""
        return self.model_dump(mode="json", exclude_unset=True)

    @classmethod
    def read(cls, summary: Mapping[str, Any]) -> Self:
        return cls.model_validate(dict(summary))
