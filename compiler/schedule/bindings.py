"""Operator binding: what an operator may be built of, and whether a layer's design asks for something that exists."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.compiler.analysis.pairs import PAIRINGS
from penstock.compiler.dialects.bindings import shares_of
from penstock.compiler.errors import PenstockError
from penstock.compiler.schedule.library import OperatorLibrary


def implementations(library: OperatorLibrary, operation: str, bits: int = 1) -> tuple[str, ...]:
    """What an operation of so many bits can be built of, the library's own choice first."""
    names = {"arith.muli", "mac"} if operation == "arith.muli" else {operation}  # a product that is added to something
    return tuple(dict.fromkeys(r.binding for r in library.operators if names.intersection(r.ops) and bits <= r.bits))


def check_bindings(
    library: OperatorLibrary, layer: str, bindings: Mapping[str, str], operations: Collection[str]
) -> None:
    """Refuse a binding of what the layer does not compute, or to what the platform does not have."""
    for operation, choice in bindings.items():
        where = f"{layer}: bindings.{operation}"
        if operation not in operations:
            raise PenstockError(
                code="bad-design", what=f"the layer computes no {operation}", where=where,
                limit="it computes " + ", ".join(sorted(operations)), hint="remove the binding or correct its name",
            )  # fmt: skip
        known = implementations(library, operation)
        if len(known) < 2:
            only = f"as {known[0]} only" if known else "in no way at all"
            raise PenstockError(
                code="bad-design", what="there is nothing to choose here", where=where,
                limit=f"{library.version} builds {operation} {only}", hint="remove the binding",
            )  # fmt: skip
        shares = shares_of(choice)
        named = [choice] if shares is None else [*(name for _, name in shares[0]), shares[1]]
        if len(named) > 1 and (shared := set(named).intersection(PAIRINGS)):
            raise PenstockError(
                code="bad-design", what=f"{operation} cannot be {choice!r}", where=where,
                limit="lanes of a kernel are paired all together or not at all", hint=f"say {min(shared)!r} alone",
            )  # fmt: skip
        if not set(named) <= set(known):
            raise PenstockError(
                code="bad-design", what=f"{operation} cannot be built of {choice!r}", where=where,
                limit=f"{library.version} has " + ", ".join(known),
                hint=f"take one of these, or a mixture such as '12 {known[0]}, {known[1]}'",
            )  # fmt: skip
