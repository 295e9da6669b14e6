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
