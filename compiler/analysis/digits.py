"""How a constant is multiplied by: as so many additions as it has digits."""

from __future__ import annotations


def signed_digits(number: int) -> int:
    """Digits other than 0 in the shortest sum of powers of two with signs."""
    digits = 0
    while number:
        if number & 1:
            digits += 1
            number -= 2 - (number & 3)
        number >>= 1
    return digits
