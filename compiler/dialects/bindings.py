"""What operators are built of, as nests and tasks say it: one implementation, or several shared out among them.

A binding is a text: `fabric`, or `897 dsp, fabric`, which means that the first 897 operators of its kind in the nest
are built of DSPs and all others of fabric. They are counted in the order of the body, all lanes of one operation before
the next, a tree of sums level by level from its leaves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.scaling import scaling_of

BindingShare = tuple[int, str]
"""How many operators, and what they are built of."""
_COUNTED = re.compile(r"([1-9][0-9]*) ([a-z][a-z0-9_]*)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def shares_of(binding: str) -> tuple[tuple[BindingShare, ...], str] | None:
    """The counted shares of a binding and what all other operators are built of; None if it has another form."""
    *counted, rest = binding.split(", ")
    found = [_COUNTED.fullmatch(part) for part in counted]
    if not _NAME.fullmatch(rest) or not all(found):
        return None
    return tuple((int(match[1]), match[2]) for match in found if match), rest


def mixture(count: int, implementation: str, rest: str) -> str:
    """The binding of so many operators to one implementation and of all others to another."""
    return f"{count} {implementation}, {rest}" if count else rest


def bindings_of(op: Operation) -> dict[str, str]:
    """What the operators of a nest, or of the task that it is made from, are to be built of; mostly nothing."""
    found = op.properties.get("bindings")
    if found is None:
        return {}
    table = dict(found.data) if isinstance(found, DictionaryAttr) else dict[str, Attribute]()
    choices = {name: choice.data for name, choice in table.items() if isinstance(choice, StringAttr)}
    if not choices or len(choices) < len(table) or not all(shares_of(choice) for choice in choices.values()):
        raise VerifyException(f"{op.name}: bindings {found} must name an implementation for each operation")
    return choices


class Allotment:
    """Hands implementations out to the operators of one nest, in the order in which they are counted."""

    def __init__(self, bindings: Mapping[str, str]) -> None:
        self._left: dict[str, list[BindingShare]] = {}
        self._rest: dict[str, str] = {}
        for name, binding in bindings.items():
            shares = shares_of(binding)
            assert shares is not None, "the verifier has seen it"
            self._left[name], self._rest[name] = list(shares[0]), shares[1]

    def is_whole(self, op: Operation, implementation: str) -> bool:
        """Whether all operators of an operation's kind are built so."""
        return self._rest.get(op.name) == implementation and not self._left[op.name]

    def take(self, op: Operation, lanes: int) -> list[tuple[int, str | None]]:
        """What one operation is built of in all lanes, in runs of consecutive lanes; None is the library's choice.

        A float times a power of two is no multiplier, and is not counted as one.
        """
        if op.name not in self._rest or scaling_of(op) is not None:
            return [(lanes, None)]
        left, runs = self._left[op.name], list[tuple[int, str | None]]()
        while lanes and left:
            count, name = left.pop(0)
            taken = min(count, lanes)
            if count > taken:
                left.insert(0, (count - taken, name))
            runs.append((taken, name))
            lanes -= taken
        return [*runs, (lanes, self._rest[op.name])] if lanes else runs
