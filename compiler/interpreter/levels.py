"""Dependence levels of iterations: those of one level need nothing of each other and can be run together."""

from __future__ import annotations

from typing import cast

import numpy as np

from penstock.compiler.interpreter.cells import Indices


def levels(parents: Indices) -> Indices:
    """The level of each iteration, one above those of its parents: a row of earlier iterations, -1 for none.

    An iteration is not its own parent: what it stores and loads itself follows the order of the body.
    """
    parents = np.where(parents == np.arange(len(parents))[:, None], -1, parents)
    highest = parents.max(axis=1, initial=-1)
    lowest = np.where(parents < 0, highest[:, None], parents).min(axis=1, initial=len(parents))
    if parents.shape[1] == 1 or np.array_equal(np.where(highest < 0, -1, lowest), highest):
        return _chain(highest)
    return _sequence(parents)


def _chain(parent: Indices) -> Indices:
    """At most one parent each: the length of the chain, by doubling the step that is taken along it."""
    depth = (parent >= 0).astype(np.int64)
    above = parent
    while (above >= 0).any():
        known = above >= 0
        at = np.where(known, above, 0)
        depth = depth + np.where(known, depth[at], 0)
        above = np.where(known, above[at], -1)
    return depth


def _sequence(parents: Indices) -> Indices:
    """Several parents: from the first iteration to the last."""
    found: list[int] = []
    for row in cast("list[list[int]]", parents.tolist()):
        found.append(1 + max((found[p] for p in row if p >= 0), default=-1))
    return np.array(found, np.int64)
