"""Slots in use, token by token: what `channel_times.py` asks of channels with many tokens, compiled.

Times never fall from token to token, so both ends of what is held only go on.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit


@jit
def most_in_use(index: Words, wanted: Words, read: Words) -> int:
    """The most slots in use when a token finds one in the cycle that it is `wanted`, its own among them."""
    most, gone, count = 0, 0, len(index)
    for k in range(count):
        while gone < count and read[gone] < wanted[k]:
            gone += 1
        most = max(most, index[k] - index[gone - 1] if gone > 0 else index[k] + 1)
    return most


@jit
def most_when_late(index: Words, written: Words, read: Words) -> int:
    """The same where each token is written as late as no later one lets its reader wait for; 0 where there is no such.

    A token that is written late delays all later ones as much, so none may use up what the tightest of these has.
    """
    most, gone, spare = 0, len(index), 0
    for k in range(len(index) - 1, -1, -1):
        own = read[k] - written[k]
        spare = own if k == len(index) - 1 else min(spare, own)
        while gone > 0 and read[gone - 1] >= written[k] + spare - 1:
            gone -= 1
        most = max(most, index[k] - index[gone - 1] if gone > 0 else index[k] + 1)
    return most if spare >= 1 else 0
