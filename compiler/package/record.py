"""What all records of a report have in common: strict fields, and figures that are None where nobody measured them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.strict_record import Record

Cycles = Annotated[int | None, Field(ge=0, description="clock cycles; null: not measured")]
Count = Annotated[int | None, Field(ge=0, description="null: not measured")]
Share = Annotated[float | None, Field(ge=0, description="used / available; null: not measured")]
Ratio = Annotated[float | None, Field(ge=0, le=1, description="null: not measured")]
From = Annotated[Evidence | None, Field(description="where the figures come from; null: nothing was measured")]


def check_evidence(evidence: Evidence | None, figures: Sequence[object]) -> None:
    if evidence is None and any(figure is not None for figure in figures):
        raise ValueError("figures are given without their evidence")


class LeftOut(Record):
    """Something that only explains or decorates, and could not be made."""

    part: str
    why: str
