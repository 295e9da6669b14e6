"""What every record that is written as JSON has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Frozen, and strict about names: a misspelt field is an error, not a missing figure."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
