"""The report's records about a task program's elements of hardware: which instances, and whose body."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.compiler.package.record import Record


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
