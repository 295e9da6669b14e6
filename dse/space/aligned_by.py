"""What the lanes of aligned kernels follow: apart from the space, so that options can be read without it."""

from __future__ import annotations

from typing import Literal

AlignedBy = Literal["both", "intensity", "connection", "neither"]
