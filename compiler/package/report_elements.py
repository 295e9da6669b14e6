"""The report's records about what people wrote: a kernel's line in the model, and a task program's elements of
hardware: which instances, and whose body."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.compiler.package.record import Record


class WrittenInfo(Record):
    """Where a kernel stands in the user's model. One that was fused has several."""

    kernel: str
    file: str = Field(description="its own name, without folders; empty: there is no line, as of an ONNX node")
    line: int = Field(ge=0)
    text: str = Field(description="the line as it stands there")
    layer: str = Field(description="the module's path in the model, or the node's name; empty: its top level")
    operation: str = Field(description="in the words of PyTorch or ONNX; empty: of a task program")


class BodyInfo(Record):
    """A body of a task that was written by hand, as its contract says."""

    name: str
    language: Literal["systemverilog", "cpp"]
    symbol: str = Field(description="the module or function")
    ii: int
    depth: int
    checked: str = Field(description="which clauses were held against the body, and by what; the others are declared")


class ElementInfo(Record):
    """An element of hardware, and the instances of a task program that share it."""

    name: str
    instances: tuple[str, ...] = Field(description="in the order of their turns")
    ports: int = Field(description="streams and tensors that it meets")
    body: BodyInfo | None = Field(default=None, description="if it was written by hand")
    row: int | None = Field(default=None, description="where it stands on the program's grid")
    column: int | None = Field(default=None, description="as row")


class PlacementInfo(Record):
    """Elements on a grid whose neighbours are linked."""

    rows: int
    columns: int
    streams: int = Field(description="between two elements")
    over_neighbours: int = Field(description="streams that take one hop")
    longest: int = Field(description="hops of the stream that leads furthest")
    hops: int = Field(description="tokens times hops, summed over streams")
    bound: int = Field(description="no placement has fewer")
    most_on_a_link: int = Field(description="streams that one link carries in one direction")
