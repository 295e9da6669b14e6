"""Which bank of a memory an access meets, and how many cycles its ports need for one iteration's accesses."""

from __future__ import annotations

from collections import Counter as Count
from math import prod

from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.storage import KernelArray

BankSpot = tuple[int, tuple[tuple[int, int], ...]]
"""In one dimension: what is certain of the bank, and the counters' part of it, (number, factor) each."""
Bank = tuple[BankSpot, ...]


def bank_of(access: KernelValue) -> Bank:
    """Where an access goes. Two with the same counters' part meet one bank if the certain part is the same."""
    array = access.array
    assert array is not None
    return tuple(_place(array, d, node) for d, node in enumerate(access.index))


def word_of(access: KernelValue) -> tuple[object, ...] | None:
    """Which word of its bank an access meets, where a pragma has put several elements into one: those that are met
    together are one access."""
    array = access.array
    assert array is not None
    if not array.reshape:
        return None
    return tuple(_granule(array, d, node) for d, node in enumerate(access.index))


def _granule(array: KernelArray, dimension: int, node: KernelValue) -> object:
    way, factor = array.reshape.get(dimension, ("none", 1))
    linear = node.linear
    if linear is None:
        return node
    if factor >= array.dims[dimension]:
        return ()
    if way == "cyclic" and all(f % factor == 0 for _, f in linear.terms):
        return linear.terms, linear.base // factor
    return linear.terms, linear.base


def _place(array: KernelArray, dimension: int, node: KernelValue) -> BankSpot:
    way, factor = array.cut(dimension)
    if factor == 1:
        return 0, ()
    linear = node.linear
    if linear is None:
        return 0, ((-1 - node.number, 1),)
    length = -(-array.dims[dimension] // factor)
    if way == "block":
        low, high = linear.range
        if low // length == high // length:
            return low // length, ()
        return 0, tuple((c.number, f) for c, f in linear.terms)
    moving = tuple((c.number, f % factor) for c, f in linear.terms if f % factor)
    return linear.base % factor, moving


def _words_met(accesses: list[KernelValue]) -> list[KernelValue]:
    """Without stores of a word that the iteration stores anyway: under several conditions one stores a choice."""
    stores = {(node.array, *(arg.linear or arg for arg in node.index)): node for node in accesses if node.op == "store"}
    return [node for node in accesses if node.op != "store"] + list(stores.values())


def port_bound(array: KernelArray, accesses: list[KernelValue], ports: int) -> tuple[int, str]:
    """The least II for one array, and the reason in words."""
    wide = prod(f for _, f in array.reshape.values()) if array.reshape else 1
    banks = [bank_of(node) for node in _words_met(accesses)]
    fixed = [d for d in range(len(array.dims)) if all(not bank[d][1] for bank in banks)]
    met: dict[tuple[int, ...], dict[tuple[tuple[tuple[int, int], ...], ...], Count[Bank]]] = {}
    for bank in banks:
        certain = tuple(bank[d][0] for d in fixed)
        moving = tuple(place[1] for place in bank)
        met.setdefault(certain, {}).setdefault(moving, Count())[bank] += 1
    most = max((sum(max(group.values()) for group in groups.values()) for groups in met.values()), default=0)
    most = -(-most // wide)
    bound = -(-most // ports)
    return bound, f"{most} accesses an iteration to a bank of {array.name} with {ports} ports"
