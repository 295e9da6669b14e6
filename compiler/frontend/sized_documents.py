"""What the host does around the accelerator, at the sizes that a call says: documents of one form, from imports.

A number that grows with a length by the same amount in each step becomes what it follows from; all else has to be
equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.compiler.errors import PenstockError
from penstock.compiler.lengths import ByLength, Length, sizes_json


@dataclass(frozen=True)
class AtLess:
    """The same document where one length is less than the largest."""

    length: Length
    less: int
    document: Any


def sized_document(largest: Mapping[str, Any], others: Sequence[AtLess], where: str) -> dict[str, Any]:
    """The document for all lengths: `lengths` has the largest of each, a size is {"size": what it follows from}."""
    found = cast("dict[str, Any]", _sized(largest, others, where))
    return {**found, "lengths": {one.length.name: one.length.high for one in others}}


def _sized(largest: Any, others: Sequence[AtLess], where: str) -> Any:
    if all(one.document == largest and type(one.document) is type(largest) for one in others):
        return largest
    if type(largest) is int and all(type(one.document) is int for one in others):
        return {"size": sizes_json((_count(largest, others, where),))[0]}
    keys = _keys(largest)
    if not keys or any(_keys(one.document) != keys for one in others):
        other = next(one for one in others if one.document != largest)
        less = f"{_said(other.document)} at {other.length.name}={other.less}"
        most = f"{_said(largest)} at {other.length.high}"
        raise refused_size(where, f"the host computes with {less} and with {most}")
    whole = cast("dict[Any, Any]", largest)  # or a list, by its places
    inner = f"{where}.{whole['name']}" if "name" in keys and isinstance(whole["name"], str) else where
    parts = {
        key: _sized(whole[key], [AtLess(one.length, one.less, one.document[key]) for one in others], inner)
        for key in keys
    }
    return list(parts.values()) if isinstance(largest, list) else parts


def _keys(document: Any) -> list[Any]:
    if isinstance(document, dict):
        return list(cast("dict[Any, Any]", document))
    return list(range(len(cast("list[Any]", document)))) if isinstance(document, list) else []


def _count(largest: int, others: Sequence[AtLess], where: str) -> ByLength:
    factors: dict[str, int] = {}
    for one in others:
        factor, rest = divmod(largest - one.document, one.length.high - one.less)
        if rest:
            said = f"{largest} at {one.length.name}={one.length.high} and {one.document} at {one.less}"
            raise refused_size(where, f"a number of the host's part is {said}, which does not grow evenly")
        factors[one.length.name] = factor
    most = {one.length.name: one.length.high for one in others}
    return ByLength.of(factors, largest - sum(factor * most[name] for name, factor in factors.items()))


def _said(document: Any) -> str:
    text = str(document)
    return text if len(text) <= 60 else text[:60] + "..."


def refused_size(where: str, why: str) -> PenstockError:
    return PenstockError(
        code="length-unsupported", what=f"its size cannot be said at each call: {why}", where=where,
        limit="sizes grow with a length by whole numbers, and the model and what the host does are otherwise the same",
        hint="compile for one size, without --dim",
    )  # fmt: skip
