"""Integers as C++ and ap_int compute them: how wide a result is, whether it has a sign, and what wraps.

A node holds an exact integer of `bits` bits, with or without a sign. What a source's type has no room for is wrapped to
it; what fits is computed in as few bits as the result can have, as the tool does it.
"""

from __future__ import annotations

from penstock.compiler.hls_in.graph import KernelValue

Width = tuple[int, bool]
"""Bits, and whether one of them is a sign."""
ANY_WIDTH = 128
"""Bits of the type in which this folder's headers let numbers of any width compute."""


def width_of(node: KernelValue) -> Width:
    if node.kind == "bool":
        return 1, False
    if node.constant:
        value = int(node.value or 0)
        return (max(1, value.bit_length()), False) if value >= 0 else ((~value).bit_length() + 1, True)
    if node.linear is not None and node.linear.range[0] >= 0:
        return node.bits, False
    return node.bits, node.signed


def plain(node: KernelValue) -> bool:
    """Whether nothing of a node is without a sign but what counts or is constant."""
    return (node.signed and node.kind != "bool") or node.constant or node.linear is not None


def fits(given: Width, wanted: Width) -> bool:
    bits, signed = given
    return bits <= wanted[0] - (not signed and wanted[1]) and (wanted[1] or not signed)


def wrapped(value: int, bits: int, signed: bool) -> int:
    """A constant in so many bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and bits > 1 and value >> (bits - 1) else value


def result_width(sign: str, left: KernelValue, right: KernelValue, declared: Width | None) -> Width:
    """Bits of a result, whatever the type that C++ computes in, and at most those of that type."""
    if plain(left) and plain(right) and (declared is None or declared[0] < ANY_WIDTH):
        most = declared or (max(left.bits, right.bits), True)
        bits = min(most[0], _natural(sign, left, right))
        return bits, most[1] if bits == most[0] and declared is not None else True
    exact = _exact(sign, left, right)
    return exact if declared is None or fits(exact, declared) else declared


def _natural(sign: str, left: KernelValue, right: KernelValue) -> int:
    wide = max(left.bits, right.bits)
    match sign:
        case "*":
            return left.bits + right.bits
        case "+" | "-" | "/":
            return wide + 1
        case "&" | "|" | "^" | "%":
            return wide
        case ">>":
            return left.bits
        case _:
            return 64


def _exact(sign: str, left: KernelValue, right: KernelValue) -> Width:
    (a, a_signed), (b, b_signed) = width_of(left), width_of(right)
    signed = a_signed or b_signed
    x, y = (a + (signed and not a_signed), b + (signed and not b_signed))
    match sign:
        case "+":
            return max(x, y) + 1, signed
        case "-":
            return max(x, y) + 1, True
        case "*":
            return x + y, signed
        case "&" if not a_signed or not b_signed:
            return min(bits for bits, s in ((a, a_signed), (b, b_signed)) if not s), False
        case "&" | "|" | "^":
            return max(x, y), signed
        case ">>":
            return max(a, b + 1), a_signed
        case "/" | "%":
            return max(x, y) + (signed and sign == "/"), signed
        case "<<" if right.constant and 0 <= int(right.value or 0) < ANY_WIDTH:
            return a + int(right.value or 0), a_signed
        case _:
            return ANY_WIDTH, signed


def kept_width(node: KernelValue) -> int:
    """Bits that nests keep a value in: those of its C++ type, of counters and constants those of int if it has room."""
    if node.linear is None or node.kind != "int":
        return node.bits
    low, high = node.linear.range
    return 32 if low >= -(1 << 31) and high < 1 << (32 - node.signed) else 64
