"""A task whose body was written by hand: a module around it that counts its tokens, opens it a run at a time, and says
when a run has ended.

The body has `clk`, `rst` and, for each pin, `_tdata`, `_tvalid` and `_tready` as streams do. Between the runs its
inputs are closed, so that no round of a run enters before the run before it has ended, as in generated pipelines.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from penstock.compiler.backend.rtl.length_numbers import met_lengths
from penstock.compiler.backend.rtl.lines import SvLines, bits, clog2
from penstock.compiler.backend.rtl.ports import Signal, stream_pins
from penstock.compiler.backend.rtl.task_sv import TaskModule, met_channels
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.injected import Injected
from penstock.compiler.dialects.stream import StreamType
from penstock.compiler.errors import PenstockError


def emit_injected(task: stream.TaskOp, body: Injected, names: Mapping[SSAValue, str]) -> TaskModule:
    """`names` are those of channels."""
    _check(task, body)
    name, pins, counts = task.sym_name.data, body.pins, {**dict(body.reads), **dict(body.writes)}
    outer = [Signal("clk", False), Signal("rst", False)]
    out, inner = SvLines(), ["clk(clk)", "rst(rst)"]
    output = ""
    for value, writes in met_channels(task):
        assert isinstance(value.type, StreamType)
        assert isinstance(value.owner, stream.StreamOp)
        own, pin = names[value], pins[value.owner.sym_name.data]
        outer += stream_pins(own, value.type.token, writes=writes)
        taken, count = f"{own}_count", counts[pin]
        out.add(f"logic {bits(clog2(count + 1))}{taken};  // tokens of this run")
        if writes:
            output = f"{own}_tvalid & {own}_tready & ({taken} == {count - 1})"
            inner += [f"{pin}_tvalid({own}_tvalid)", f"{pin}_tready({own}_tready)"]
        else:
            out.add(
                f"wire {own}_open = {taken} != {count};",
                f"logic {own}_takes;",
                f"assign {own}_tready = {own}_takes & {own}_open;",
            )
            inner += [f"{pin}_tvalid({own}_tvalid & {own}_open)", f"{pin}_tready({own}_takes)"]
        inner.append(f"{pin}_tdata({own}_tdata)")
        passes = f"{own}_tvalid & {own}_tready"
        out.add(
            f"always_ff @(posedge clk) if (rst | ended) {taken} <= '0; else if ({passes}) {taken} <= {taken} + 1'b1;"
        )
    outer.append(Signal("ended", True))
    text = SvLines()
    text.add(f"// Layer {task.layer.data}: the body {body.name} was written by hand, as module {body.symbol}.")
    text.add("/* verilator lint_off WIDTH */")
    with text.block(f"module task_{name} (", ");"):
        text.add(*(pin.declaration() + ("," if pin is not outer[-1] else "") for pin in outer))
    text.indent += 1
    text.add(*out.text, f"assign ended = {output};")
    text.add(f"{body.symbol} body (")
    text.add(*(f"  .{one}{',' if one is not inner[-1] else ''}" for one in inner), ");")
    text.indent -= 1
    text.add("endmodule")
    last = tuple(value for value, writes in met_channels(task) if writes)
    files = {f"body_{body.symbol}": body.text if body.text.endswith("\n") else body.text + "\n"}
    return TaskModule(
        task, f"task_{name}", "\n".join(text.text) + "\n", tuple(outer), {}, {}, files, {}, starts=False,
        hands_on=last, pin_names=names,
    )  # fmt: skip


def _check(task: stream.TaskOp, body: Injected) -> None:
    """Runs begin with a token that is taken and end with one that is given: else nobody sees where they do."""
    if met := met_lengths(task):
        raise PenstockError(
            code="length-unsupported", where=f"use of {body.name}", what=f"its rounds follow from {min(met)}",
            limit="a body that was written by hand does one size", hint="leave the body out, or --dim",
        )  # fmt: skip
    (one,) = (op for op in task.body.block.ops if isinstance(op, nest.NestOp))
    first, last = [0] * len(one.trips), [trip - 1 for trip in one.trips]
    takes = any(isinstance(op, nest.ReadOp) and op.when.holds(first) for op in one.body.block.ops)
    gives = any(isinstance(op, nest.WriteOp) and op.when.holds(last) for op in one.body.block.ops)
    if not takes or not gives:
        raise PenstockError(
            code="no-such-body", where=f"use of {body.name}",
            what=f"the task's {'last round gives' if takes else 'first round takes'} no token",
            limit="a body in SystemVerilog takes a token in its first round, and gives one in its last",
            hint="let the task get before its loops begin to compute, and put at their end",
        )  # fmt: skip
