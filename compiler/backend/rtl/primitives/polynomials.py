"""Functions as tables of polynomials: one polynomial a segment, evaluated by Horner's rule in 18-bit multipliers.

Coefficients are fitted here, so the generated module and what it is the table of cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SAMPLES = 257
_MOST_IN_LUTS = 128


@dataclass(frozen=True)
class Segments:
    """A function of x = start[i] + (d + 1/2 span) * unit[i] for segment i and a signed d of `d_bits` bits.

    The result is `function * 2^fraction`; coefficient k >= 1 has its own scale so that d * it fills a multiplier.
    """

    name: str
    function: Callable[[Floats], Floats]
    starts: Sequence[float]
    units: Sequence[float]
    """What one step of d is worth, a segment."""
    d_bits: int
    degree: int
    fraction: int
    slope_sign: int = 0
    """1 or -1 where the inner sum has one sign, which buys it a bit; 0 where it varies."""

    @property
    def index_bits(self) -> int:
        return (len(self.starts) - 1).bit_length()

    @property
    def in_block_ram(self) -> bool:
        """Block RAM answers late, so it takes a register of its own; for few segments LUTs are the cheaper ones."""
        return len(self.starts) > _MOST_IN_LUTS

    @property
    def latency(self) -> int:
        return 2 * self.degree + 1 + self.in_block_ram


@dataclass(frozen=True)
class SegmentTable:
    """Integer coefficients by segment, lowest degree first, and how far each product is shifted down."""

    rows: tuple[tuple[int, ...], ...]
    shifts: tuple[int, ...]
    """shifts[k - 1]: of d times what coefficient k begins."""


def fit(segments: Segments) -> SegmentTable:
    """Coefficients rounded from the highest degree down, each refitted to what the rounded ones leave over."""
    half = 1 << (segments.d_bits - 1)
    nodes = half * np.cos(np.pi * (np.arange(_SAMPLES) + 0.5) / _SAMPLES)
    targets = [
        segments.function(start + (nodes + half) * unit) * 2.0**segments.fraction
        for start, unit in zip(segments.starts, segments.units, strict=True)
    ]
    exact = [_chebyshev(nodes / half, t, segments.degree) / half ** np.arange(segments.degree + 1) for t in targets]
    shifts = _shifts(segments, exact, half)
    rows = tuple(_round_row(segments, nodes, t, shifts) for t in targets)
    return SegmentTable(rows, shifts)


def _chebyshev(x: Floats, y: Floats, degree: int) -> Floats:
    """Power coefficients of the least-squares fit on Chebyshev nodes, which is nearly the minimax one."""
    fitted = np.polynomial.chebyshev.chebfit(x, y, degree)
    power = np.polynomial.chebyshev.cheb2poly(fitted)
    return np.pad(power, (0, degree + 1 - len(power))).astype(np.float64)


def _shifts(segments: Segments, exact: Sequence[Floats], half: int) -> tuple[int, ...]:
    """Each inner sum gets as many fraction bits as keep it within 18 bits, and no more than matter."""
    shifts: list[int] = []
    scale = 0
    for k in range(1, segments.degree + 1):
        reach = max(
            sum(abs(row[j]) * half ** (j - k) for j in range(k, segments.degree + 1)) for row in exact
        ) * 2.0**scale  # fmt: skip
        bits = 18 if k == 1 and segments.slope_sign else 17
        shift = bits - int(np.ceil(np.log2(reach * 1.01)))
        if k > 1:
            shift = min(shift, segments.d_bits)  # finer than a quarter of what the next sum can hold
        shifts.append(shift)
        scale += shift
    return tuple(shifts)


def _round_row(segments: Segments, nodes: Floats, target: Floats, shifts: Sequence[int]) -> tuple[int, ...]:
    half = 1 << (segments.d_bits - 1)
    rest = target.copy()
    row: dict[int, int] = {}
    for k in range(segments.degree, 0, -1):
        fitted = _chebyshev(nodes / half, rest, k) / half ** np.arange(k + 1)
        scale = 2.0 ** sum(shifts[:k])
        row[k] = round(fitted[k] * scale)
        rest = rest - row[k] / scale * nodes**k
    d = np.unique(np.linspace(-half, half - 1, 4 * _SAMPLES).astype(np.int64))
    inner = horner(d, [0, *(row[k] for k in range(1, segments.degree + 1))], shifts)
    start_offset = np.interp(d, nodes[::-1], target[::-1]) - inner
    row[0] = round((start_offset.min() + start_offset.max()) / 2)
    return tuple(row[k] for k in range(segments.degree + 1))


def horner(d: NDArray[np.int64], row: Sequence[int], shifts: Sequence[int]) -> NDArray[np.int64]:
    """What the module computes, in integers."""
    value = np.full_like(d, row[-1])
    for k in range(len(row) - 1, 0, -1):
        value = row[k - 1] + ((d * value) >> shifts[k - 1])
    return value


def polynomial_module(segments: Segments) -> str:
    """The module: ROM of coefficients, then a product and a sum a degree, each with a register after it."""
    table = fit(segments)
    n = segments.degree
    widths = [max(2, *(abs(row[k]).bit_length() + 1 for row in table.rows)) for k in range(n + 1)]
    out_bits = segments.fraction + 2
    widths[0] = out_bits
    total, d_bits, index_bits = sum(widths), segments.d_bits, segments.index_bits
    lines = [
        f"// {segments.name}: {len(table.rows)} polynomials of degree {n}, generated from the function itself.",
        f"// y has {segments.fraction} fraction bits. Latency {segments.latency}.",
        f"module {segments.name} (", "    input clk,", "    input ce,", f"    input [{index_bits - 1}:0] index,",
        f"    input signed [{d_bits - 1}:0] d,", f"    output reg signed [{out_bits - 1}:0] y", ");",
        f'  (* rom_style = "{"block" if segments.in_block_ram else "logic"}" *) reg [{total - 1}:0] '
        f"rows[0:{(1 << index_bits) - 1}];",
        "  initial begin",
    ]  # fmt: skip
    for i, row in enumerate(table.rows):
        packed = 0
        for k in reversed(range(n + 1)):
            packed = packed << widths[k] | (row[k] & ((1 << widths[k]) - 1))
        lines.append(f"    rows[{i}] = {total}'h{packed:x};")
    lines += [f"    rows[{i}] = {total}'d0;" for i in range(len(table.rows), 1 << index_bits)]
    early = "d"
    if segments.in_block_ram:
        early = "d0"
        lines += ["  end", f"  reg [{total - 1}:0] row;", f"  reg signed [{d_bits - 1}:0] d0;",
                  "  always @(posedge clk) if (ce) row <= rows[index];",
                  "  always @(posedge clk) if (ce) d0 <= d;"]  # fmt: skip
    else:
        lines += ["  end", f"  wire [{total - 1}:0] row = rows[index];"]
    lines.append(f"  reg signed [{d_bits - 1}:0] d1;")
    offset = 0
    for k, width in enumerate(widths):
        lines += [f"  reg signed [{width - 1}:0] c{k}_1;",
                  f"  always @(posedge clk) if (ce) c{k}_1 <= row[{offset + width - 1}:{offset}];"]  # fmt: skip
        offset += width
    lines += [f"  always @(posedge clk) if (ce) d1 <= {early};", f"  wire signed [{widths[n] - 1}:0] sum{n} = c{n}_1;"]
    stage = 1
    for k in range(n, 0, -1):
        lines += _step(segments, table.shifts[k - 1], widths, k, stage)
        stage += 2
    return "\n".join([*lines, "endmodule", ""])


def _step(segments: Segments, shift: int, widths: Sequence[int], k: int, stage: int) -> list[str]:
    """From the sum that coefficient k began to the one that coefficient k - 1 begins."""
    signed = not (k == 1 and segments.slope_sign)
    negated = k == 1 and segments.slope_sign < 0
    product, last = f"product{k}", k == 1
    operand = f"d{stage}"
    if (spare := 18 - segments.d_bits) > 0:
        operand = f"{{{{{spare}{{d{stage}[{segments.d_bits - 1}]}}}}, d{stage}}}"
    lines = [
        f"  wire signed [17:0] factor{k} = {'-' if negated else ''}sum{k};",
        f"  wire signed [35:0] {product};",
        f"  mult18 #(.SIGNED_A(1), .SIGNED_B({int(signed)})) multiplier{k} (.clk(clk), .ce(ce), .a({operand}), "
        f".b(factor{k}), .y({product}));",
    ]
    for j in range(k):  # what is still needed travels along
        for s in (stage + 1, stage + 2):
            if s == stage + 2 and j == k - 1:
                continue
            lines += [f"  reg signed [{widths[j] - 1}:0] c{j}_{s};",
                      f"  always @(posedge clk) if (ce) c{j}_{s} <= c{j}_{s - 1};"]  # fmt: skip
    if not last:
        for s in (stage + 1, stage + 2):
            lines += [f"  reg signed [{segments.d_bits - 1}:0] d{s};",
                      f"  always @(posedge clk) if (ce) d{s} <= d{s - 1};"]  # fmt: skip
    sign = "-" if negated else "+"
    term = f"({product} >>> {shift})"
    if last:
        lines.append(f"  always @(posedge clk) if (ce) y <= c0_{stage + 1} {sign} {term};")
    else:
        lines += [f"  reg signed [18:0] sum{k - 1};",
                  f"  always @(posedge clk) if (ce) sum{k - 1} <= c{k - 1}_{stage + 1} {sign} {term};"]  # fmt: skip
    return lines
