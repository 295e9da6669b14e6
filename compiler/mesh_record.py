"""What is kept of a mesh's plan beside a program, for pages: numbers and names, looked at before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

FILE = "mesh.json"
MOST_CORES, MOST_LINKS, MOST_BINS, MOST_LINES = 4096, 1 << 16, 256, 400
MeshRecord = Mapping[str, Any]


class BadMeshRecordError(Exception):
    """What of a record is not as a record is."""


def checked_record(found: object) -> MeshRecord:
    """The record, if it is one: `extents` of the cores, shares of the run, links from core to core."""
    if not isinstance(found, dict):
        raise BadMeshRecordError("no object")
    record = cast("dict[str, Any]", found)
    extents = _numbers(record, "extents", 2)
    if not extents or any(not isinstance(n, int) or n < 1 for n in extents) or math.prod(extents) > MOST_CORES:
        raise BadMeshRecordError("extents")
    cores = math.prod(extents)
    if len(_numbers(record, "cores", MOST_CORES)) != cores:
        raise BadMeshRecordError("cores")
    for row in _rows(record, "links", MOST_LINKS):
        network, *ends, share = row if len(row) == 4 else ("", None, None, 0)
        if not isinstance(network, str) or not _finite(share) or any(
            not isinstance(end, int) or not -1 <= end < cores for end in ends
        ):  # fmt: skip
            raise BadMeshRecordError("links")
    for row in _rows(record, "channels", MOST_LINKS):
        if len(row) != 2 or not isinstance(row[0], str) or not _finite(row[1]):
            raise BadMeshRecordError("channels")
    for row in _rows(record, "over_time", MOST_CORES):
        if len(row) > MOST_BINS or not all(map(_finite, row)):
            raise BadMeshRecordError("over_time")
    for key in ("kernel", "mesh", "title", "blocks"):
        if not isinstance(record.get(key), str):
            raise BadMeshRecordError(key)
    for key in ("cycles", "modelled", "bound", "clock_mhz", "shown_cycles"):
        if not _finite(record.get(key)):
            raise BadMeshRecordError(key)
    nest = record.get("nest")
    if not isinstance(nest, list) or len(cast(Any, nest)) > MOST_LINES:
        raise BadMeshRecordError("nest")
    if not all(isinstance(line, str) for line in cast(Any, nest)):
        raise BadMeshRecordError("nest")
    return record


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _numbers(record: Mapping[str, Any], key: str, most: int) -> Sequence[float]:
    found = record.get(key)
    if not isinstance(found, list) or len(cast(Any, found)) > most or not all(map(_finite, cast(Any, found))):
        raise BadMeshRecordError(key)
    return cast("list[float]", found)


def _rows(record: Mapping[str, Any], key: str, most: int) -> list[list[Any]]:
    found = record.get(key)
    if not isinstance(found, list) or len(cast(Any, found)) > most:
        raise BadMeshRecordError(key)
    rows = cast("list[Any]", found)
    if not all(isinstance(row, list) for row in rows):
        raise BadMeshRecordError(key)
    return rows
