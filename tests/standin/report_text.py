"""Text reports as the tools draw them: a module's csynth report, the summary, co-simulation, implementation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.standin.analysis import Loop, Module
from tests.standin.generations import Style
from tests.standin.report_xml import Synthesis, absolute, pipeline_word, used

Head = Sequence[tuple[str, int]]
"""A line of heads: words, and over how many columns they stand."""
RULE = "=" * 64


def table(heads: Sequence[Head], rows: Iterable[Sequence[str]], totals: Iterable[Sequence[str]] = ()) -> list[str]:
    """A table with merged heads; totals stand below a line."""
    rows, totals = [list(row) for row in rows], [list(row) for row in totals]
    count = sum(span for _, span in heads[0])
    widths = [max((len(row[i]) + 2 for row in (*rows, *totals)), default=2) for i in range(count)]
    for head in heads:
        at = 0
        for words, span in head:
            widths[at] += max(0, len(words) + 2 - sum(widths[at : at + span]) - span + 1)
            at += span
    border = "+" + "+".join("-" * width for width in widths) + "+"
    lines = [border, *(_head(head, widths) for head in heads), border]
    for part in (rows, totals):
        lines += ["|" + "|".join(_cell(cell, i, widths[i]) for i, cell in enumerate(row)) + "|" for row in part]
        lines += [border] if part else []
    return lines


def _head(head: Head, widths: list[int]) -> str:
    cells: list[str] = []
    at = 0
    for words, span in head:
        cells.append(words.center(sum(widths[at : at + span]) + span - 1))
        at += span
    return "|" + "|".join(cells) + "|"


def _cell(text: str, column: int, width: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def _indented(lines: Iterable[str], spaces: int) -> list[str]:
    return [" " * spaces + line for line in lines]


def _section(title: str) -> list[str]:
    return ["", RULE, f"== {title}", RULE]


def _facts(design: Synthesis, indent: str) -> list[str]:
    new = design.style.release >= "2024"
    facts = (
        ("Date:", "Thu Oct  3 12:33:17 2024"), ("Version:", design.style.version),
        ("Project:", "work" if new else "penstock_hls"),
        ("Solution:", f"{'hls' if new else 'solution1'} (Vitis Kernel Flow Target)"),
        ("Product family:", design.family), ("Target device:", design.part),
    )  # fmt: skip
    return [f"{indent}* {name:<16}{value}" for name, value in facts]


def module_report(design: Synthesis, module: Module) -> str:
    """`<module>_csynth.rpt`."""
    lines = ["", "", RULE, f"== Vitis HLS Report for '{module.name}'", RULE, *_facts(design, ""), ""]
    lines += _section("Performance Estimates")
    lines += ["+ Timing: ", "    * Summary: "]
    clock = [["ap_clk", f"{design.period:.2f} ns", f"{design.estimated:.3f} ns", f"{0.27 * design.period:.2f} ns"]]
    lines += _indented(table([[(h, 1) for h in ("Clock", "Target", "Estimated", "Uncertainty")]], clock), 4)
    lines += ["", "+ Latency: ", "    * Summary: "]
    lines += _indented(table(_TIMES, [_times(module, design)]), 4)
    lines += ["", "    + Detail: ", "        * Instance: "]
    calls = [next(m for m in design.modules if m.name == name) for name in module.calls]
    named = [[f"{callee.name}_U0", callee.name, *_times(callee, design)] for callee in calls]
    instances = [[("", 1), ("", 1), *_TIMES[0]], [("Instance", 1), ("Module", 1), *_TIMES[1]]]
    lines += _indented(table(instances, named) if named else ["N/A"], 8)
    rows = [row for loop in module.loops for row in _loop_rows(loop, module, design.style, 0)]
    lines += ["", "        * Loop: ", *_indented(table(_LOOPS, rows) if rows else ["N/A"], 8), ""]
    lines += _section("Utilization Estimates")
    columns = [[(head, 1) for head in ("Name", "BRAM_18K", "DSP", "FF", "LUT", "URAM")]]
    total = [str(count) for count in used(module).values()]
    available = [str(count) for count in design.available.values()]
    lines += ["* Summary: ", *table(columns, [["Instance", *total]], [["Total", *total], ["Available", *available]])]
    lines += ["", "+ Detail: ", "    * Instance: "]
    areas = [[f"{callee.name}_U0", callee.name, *(str(n) for n in used(callee).values())] for callee in calls]
    heads = [[(head, 1) for head in ("Instance", "Module", "BRAM_18K", "DSP", "FF", "LUT", "URAM")]]
    lines += _indented(table(heads, areas) if areas else ["N/A"], 4)
    lines += ["", "    * Memory: ", *_indented(_memories(module), 4), "", "    * FIFO: ", *_indented(_fifos(module), 4)]
    return "\n".join([*lines, "", ""])


_TIMES: Sequence[Head] = (
    (("Latency (cycles)", 2), ("Latency (absolute)", 2), ("Interval", 2), ("Pipeline", 1)),
    tuple((head, 1) for head in ("min", "max", "min", "max", "min", "max", "Type")),
)
_LOOPS: Sequence[Head] = (
    (("", 1), ("Latency (cycles)", 2), ("Iteration", 1), ("Initiation Interval", 2), ("Trip", 1), ("", 1)),
    tuple((h, 1) for h in ("Loop Name", "min", "max", "Latency", "achieved", "target", "Count", "Pipelined")),
)


def _times(module: Module, design: Synthesis) -> list[str]:
    cycles, interval = str(module.latency), str(module.interval)
    real = absolute(module.latency, design.period)
    return [cycles, cycles, real, real, interval, interval, "dataflow" if module.dataflow else design.style.idle]


def _loop_rows(loop: Loop, module: Module, style: Style, level: int) -> Iterable[list[str]]:
    mark = "+" * level or "-"
    ii = str(loop.ii) if loop.ii is not None else "-"
    word = pipeline_word(loop, module, style)
    yield [f"{mark} {loop.name}", str(loop.latency), str(loop.latency), str(loop.iteration), ii,
           "-" if loop.ii is None else "1", str(loop.trip), word]  # fmt: skip
    for inner in loop.inside:
        yield from _loop_rows(inner, module, style, level + 1)


def _fifos(module: Module) -> list[str]:
    heads = [[(head, 1) for head in ("Name", "BRAM_18K", "FF", "LUT", "URAM", "Depth", "Bits", "Size:D*B")]]
    rows = [[f"{f.name}_U", str(f.bram), str(f.ff), "0", "-", str(f.depth), str(f.bits), str(f.depth * f.bits)]
            for f in module.fifos]  # fmt: skip
    return table(heads, rows) if rows else ["N/A"]


def _memories(module: Module) -> list[str]:
    names = ("Memory", "Module", "BRAM_18K", "FF", "LUT", "URAM", "Words", "Bits", "Banks", "W*Bits*Banks")
    rows = [[f"{m.name}_U", f"{m.name}_RAM_AUTO_1R1W", str(m.bram), "0", "0", "0", str(m.words), str(m.bits), "1",
             str(m.words * m.bits)] for m in module.memories]  # fmt: skip
    return table([[(name, 1) for name in names]], rows) if rows else ["N/A"]


def summary_report(design: Synthesis) -> str:
    """csynth.rpt: all modules and loops in one tree."""
    upper = ("Modules", "Issue", "", "Latency", "Latency", "Iteration", "", "Trip", "", "", "", "", "", "")
    lower = ("& Loops", "Type", "Slack", "(cycles)", "(ns)", "Latency", "Interval", "Count", "Pipelined", "BRAM",
             "DSP", "FF", "LUT", "URAM")  # fmt: skip
    heads = [[(head, 1) for head in upper], [(head, 1) for head in lower]]
    modules = {module.name: module for module in design.modules}
    rows: list[list[str]] = []

    def module_rows(module: Module, level: int) -> None:
        kind = "dataflow" if module.dataflow else design.style.idle
        counts = [f"{count} (~0%)" if count else "-" for count in used(module).values()]
        name, real = f"{' ' * level}+ {module.name}{'*' * module.dataflow}", f"{module.latency * design.period:.3f}"
        rows.append([name, "-", "0.00", str(module.latency), real, "-", str(module.interval), "-", kind, *counts])
        for loop in module.loops:
            loop_rows(loop, module, level + 1)
        inside = [m for name, m in modules.items() if name.startswith(f"{module.name}_Pipeline_")]
        for callee in (*(modules[name] for name in module.calls), *inside):
            module_rows(callee, level + 1)

    def loop_rows(loop: Loop, module: Module, level: int) -> None:
        ii = str(loop.ii) if loop.ii is not None else "-"
        rows.append([f"{' ' * level}o {loop.name}", "-", "2.43", str(loop.latency),
                     f"{loop.latency * design.period:.3f}", str(loop.iteration), ii, str(loop.trip),
                     "no" if loop.ii is None else "yes", "-", "-", "-", "-", "-"])  # fmt: skip
        for inner in loop.inside:
            loop_rows(inner, module, level + 1)

    module_rows(design.top, 0)
    lines = ["", "", RULE, f"== Synthesis Summary Report of '{design.top.name}'", RULE, "+ General Information: "]
    lines += [*_facts(design, "    "), "", "+ Performance & Resource Estimates: ", "    "]
    lines += ["    PS: '+' for module; 'o' for loop; '*' for dataflow", *_indented(table(heads, rows), 4), ""]
    return "\n".join(lines)


def cosim_report(style: Style, latency: int, interval: int | None, *, ran: bool, passed: bool) -> str:
    """The report of a simulation that ran, or the one from before it, which always says Fail."""
    figures = [str(latency)] * 3 + [str(interval or "NA")] * 3 if ran else ["NA"] * 6
    total = str(latency + (interval or 0)) if ran else "NA"
    wide, count = "-" * 47, "".join(f"|{end.center(15)}" for end in ("min", "avg", "max"))
    ends = ("+" + "-" * 22, "| Total Execution Time ", "+    (Clock Cycles)    ", "|" + " " * 22)
    line, first, second, third = ends if style.totals else ("",) * 4
    border = f"+{'-' * 10}+{'-' * 10}+{wide}+{wide}{line}+"
    rows = [
        "|" + "|".join(cell.rjust(width) for cell, width in zip(cells, [10, 10, *[15] * 6, 22], strict=False)) + "|"
        for language, status, found, sum_ in (
            ("VHDL", "NA", ["NA"] * 6, "NA"), ("Verilog", "Pass" if passed else "Fail", figures, total),
        )
        for cells in [[language, status, *found, *([sum_] if style.totals else [])]]
    ]  # fmt: skip
    lines = ["Report time       : Thu Oct  3 04:54:51 PM PDT 2024.", "Solution          : solution1."]
    lines += ["Simulation tool   : xsim."] if ran else []
    lines += ["", border, f"|{'':10}|{'':10}|{'Latency(Clock Cycles)':^47}|{'Interval(Clock Cycles)':^47}{first}|"]
    lines += [f"+{'RTL':^10}+{'Status':^10}+{wide}+{wide}{second}+", f"|{'':10}|{'':10}{count}{count}{third}|", border]
    return "\n".join([*lines, *rows, border, ""])


def export_reports(design: Synthesis, achieved: float) -> dict[str, str]:
    """What implementation leaves: `<top>_export.rpt`, and in newer releases export_impl.rpt beside it."""
    top, verdict = design.top, "was met" if achieved <= design.period else "was NOT met"
    counts = {"LUT": top.lut * 7 // 10, "FF": top.ff * 8 // 10, "DSP": top.dsp, "BRAM": top.bram, "URAM": 0, "SRL": 0}
    old = [
        "", "", f"Implementation tool: Xilinx Vivado v.{design.style.release}", "Project:             penstock_hls",
        "Solution:            solution1", f"Device target:       {design.part}",
        "Report date:         Sun Jan 18 18:55:09 CET 2026", "", "#=== Post-Implementation Resource usage ===",
        *(f"{name + ':':<10}{count:>10}" for name, count in counts.items()), "", "#=== Final timing ===",
        f"CP required:                     {design.period:.3f}",
        f"CP achieved post-synthesis:      {0.5 * design.period:.3f}",
        f"CP achieved post-implementation: {achieved:.3f}",
        "Timing met" if achieved <= design.period else "Timing not met", "",
    ]  # fmt: skip
    reports = {f"{top.name}_export.rpt": "\n".join(old)}
    if design.style.routed:
        rows = [["Target", f"{design.period:.3f}"], ["Post-Synthesis", f"{0.5 * design.period:.3f}"],
                ["Post-Route", f"{achieved:.3f}"]]  # fmt: skip
        times = [f"| {name:<14} | {value:<11} |" for name, value in (["Timing", "Period (ns)"], *rows)]
        border = f"+{'-' * 16}+{'-' * 13}+"
        new = [RULE, "== Vivado Place & Route Results", RULE, "+ General Information:", *_facts(design, "    ")]
        new += [*_section("Place & Route Resource Summary"), *(f"{k + ':':<18}{v}" for k, v in counts.items()), ""]
        new += [*_section("Place & Route Timing Summary"), f"* Timing {verdict}", border, times[0], border]
        reports["export_impl.rpt"] = "\n".join([*new, *times[1:], border, ""])
    return reports
