"""The xDSL context in which every module of ours is parsed, built and printed."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.tensor import Tensor

from penstock.compiler.dialects import OWN_DIALECTS

_UPSTREAM = (Builtin, Func, Arith, Math, Linalg, Tensor)


def make_context() -> Context:
    """A fresh context with the upstream dialects that models arrive in, and Penstock's own.

    Named linalg operations are generalised before the hand-over, so none beyond xDSL's own are registered.
    """
    context = Context()
    for dialect in (*_UPSTREAM, *OWN_DIALECTS):
        context.load_dialect(dialect)
    return context
