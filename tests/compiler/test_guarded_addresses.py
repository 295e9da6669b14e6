"""An access may leave its memory in iterations in which its guard does not hold, and in no others."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.nest import GuardAttr, Term
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter import stream as stream_interpreter

EDGE = """
stream.top "edge" takes ["a", "b"] as ["input", "output"] lying [unit, unit] {{
^bb0(%a: memref<8xf32, "on_chip">, %b: memref<8xf32, "on_chip">):
  stream.task "t" of "t" group 0 {{
    nest.nest "n" <i: 10> {{
      %x = nest.load %a at (d0) -> (d0 - 1) when <{guard}> : memref<8xf32, "on_chip"> -> vector<1xf32>
      nest.store %x to %b at (d0) -> (d0 - 1) when <{guard}> : vector<1xf32> to memref<8xf32, "on_chip">
    }}
  }}
}}
"""


def _module(guard: str) -> ModuleOp:
    module = Parser(make_context(), EDGE.format(guard=guard)).parse_module()
    module.verify()
    return module


def test_within_its_guard_it_is_computed() -> None:
    given = np.arange(8, dtype=np.float32)
    found = stream_interpreter.run(_module("d0 ge 1, d0 le 8"), {"a": given}, {})
    assert np.array_equal(found["b"], given)


@pytest.mark.parametrize(
    ("guard", "said"), [("d0 le 8", "begins at -1"), ("d0 ge 1", "reaches 9"), ("d0 ne 0", "begins")]
)
def test_what_leaves_it_is_refused(guard: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        _module(guard)


def test_the_ends_of_a_guard() -> None:
    terms = (Term(0, "ge", 2), Term(0, "le", 5), Term(1, "eq", 3), Term(2, "in", 0b10100), Term(3, "eq", 1, 2))
    assert GuardAttr(terms).ends((9, 9, 9, 9)) == ([2, 3, 2, 0], [5, 3, 4, 8])


def test_an_output_that_is_given_holds_that_before_the_run() -> None:
    module = _module("d0 ge 1, d0 le 4")
    before = np.full(8, 7, np.float32)
    found = stream_interpreter.run(module, {"a": np.zeros(8, np.float32), "b": before}, {})
    assert found["b"].tolist() == [0] * 4 + [7] * 4
    assert before.tolist() == [7] * 8
