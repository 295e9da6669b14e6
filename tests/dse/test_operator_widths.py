"""Operators are looked up at the width that they have, whatever else their kernel reads."""

from __future__ import annotations

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend.linalg_text import read_linalg
from penstock.compiler.schedule import load_library
from penstock.dse.lanes.binding import operand_bits, operator_bits
from penstock.dse.lanes.steps import lane_cost
