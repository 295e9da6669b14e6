"""The table dialect: one scalar operation, which looks a number up (`scalars/look_up.py`)."""

from __future__ import annotations

from xdsl.ir import Dialect

from penstock.compiler.scalars.look_up import EntriesAttr, LookUpOp

TableDialect = Dialect("table", [LookUpOp], [EntriesAttr])
