"""The stream interpreter: bit for bit what the iterations give one after the other, and what it refuses."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import penstock.compiler.interpreter.nest_run as nest_run
import penstock.compiler.interpreter.plan as plan
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter import stream
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.verify import make_inputs
from tests.compiler import stepper
from tests.compiler.designs import designs, networks
from tests.compiler.frames import FRAMES, imported
from tests.compiler.test_windows import with_lanes
from tests.interpreter.nests import Body, Terms, Top, blocks, buffer, fifo

RELAXED = settings(
    suppress_health_check=[
        HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)  # fmt: skip
SIZES = st.sampled_from([1, 300, 2000, 10000, plan.STRETCH_BYTES])
"""From one iteration at a time to all of them."""
NUMBERS = np.random.default_rng(7).integers(-(2**31), 2**31 - 1, 4096).astype(np.int32)


run_fast = stream.run


def run_both(
    module: ModuleOp, memories: Mapping[str, np.ndarray], parameters: Mapping[str, np.ndarray], *, whole: bool = True
) -> dict[str, np.ndarray]:
    got = run_fast(module, memories, parameters, whole=whole)
    wanted = stepper.run(module, memories, parameters)
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        assert got[name].tobytes() == array.tobytes(), name
    return got


def check_design(data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    program = data.draw(networks())
    lowered = lower(program, data.draw(designs(program.module)))
    with monkeypatch.context() as patch:
        patch.setattr(plan, "STRETCH_BYTES", data.draw(SIZES))
        patch.setattr(nest_run, "BACKLOG_BYTES", data.draw(st.sampled_from([0, 100, nest_run.BACKLOG_BYTES])))
        patch.setattr(stream, "run", run_both)
        lowered.run_stream(make_inputs(lowered, random_sets=1)[0])


@settings(RELAXED, max_examples=12)
@given(data=st.data())
def test_random_designs_as_one_iteration_after_the_other(data: st.DataObject, monkeypatch: pytest.MonkeyPatch) -> None:
    check_design(data, monkeypatch)


@pytest.mark.slow
@settings(RELAXED, max_examples=150)
@given(data=st.data())
def test_many_more_designs_as_one_iteration_after_the_other(
    data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_design(data, monkeypatch)


@pytest.mark.parametrize("name", ["groups", "largest, overlapping"])
def test_windows_as_one_iteration_after_the_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, shape = FRAMES[name]
    lowered = with_lanes(prepare(imported(layer(), shape)), seed=3)
    monkeypatch.setattr(plan, "STRETCH_BYTES", 300)
    monkeypatch.setattr(stream, "run", run_both)
    lowered.run_stream(make_inputs(lowered, random_sets=1)[0])


@st.composite
def guards(draw: st.DrawFn, trips: tuple[int, ...]) -> Terms:
    terms: list[tuple[int, str, int]] = []
    for loop, trip in enumerate(trips):
        if draw(st.integers(0, 2)) == 0:
            terms.append((loop, draw(st.sampled_from(["eq", "ne", "ge", "le"])), draw(st.integers(0, trip - 1))))
    return tuple(terms)


@st.composite
def addresses(draw: st.DrawFn, trips: tuple[int, ...], sizes: tuple[int, ...], shape: tuple[int, ...]):
    """Anything affine that stays inside."""
    address: list[tuple[list[int], int]] = []
    for size, extent in zip(sizes, shape, strict=True):
        room, factors = size - extent, [0] * len(trips)
        for loop in draw(st.permutations(range(len(trips)))):
            most = room // (trips[loop] - 1) if trips[loop] > 1 else 0
            factors[loop] = draw(st.integers(0, most))
            room -= factors[loop] * (trips[loop] - 1)
        address.append((factors, draw(st.integers(0, room))))
    return address


class Wild:
    """A module, and the shape of its input. No dataclass: hypothesis would print every field of the IR."""

    def __init__(self, module: ModuleOp, shape: tuple[int, ...]) -> None:
        self.module, self.shape = module, shape

    def __repr__(self) -> str:
        return str(self.module)


@st.composite
def wild_nests(draw: st.DrawFn) -> Wild:
    """A buffer, filled first, that a nest then loads from and stores to in any order, at any address.

    Every iteration ends with a copy of the whole buffer, so that nothing goes unseen.
    """
    sizes = draw(st.sampled_from([(1, 4), (1, 6), (2, 6), (4, 4), (3, 1)]))
    trips = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    count, nowhere = int(np.prod(trips)), [([0] * len(trips), 0)] * 2
    top = Top()
    source = top.memory("source", "input", sizes)
    out = top.memory("out", "output", [count * sizes[0], sizes[1]])
    memory = buffer(*sizes)
    fill, body = Body((1,)), Body(trips)
    fill.store(fill.load(source, [([0], 0)] * 2, sizes), memory.result, [([0], 0)] * 2)
    values: dict[tuple[int, ...], list[SSAValue]] = {}
    for _ in range(draw(st.integers(1, 6))):
        shape = tuple(draw(st.sampled_from([d for d in range(1, s + 1) if s % d == 0])) for s in sizes)
        if shape not in values:
            values[shape] = [body.constant(draw(st.integers(1, 9)), shape)]
        known, guard, address = values[shape], draw(guards(trips)), draw(addresses(trips, sizes, shape))
        match draw(st.sampled_from(["load", "store", "mix", "update", "update"])):
            case "load":
                value = body.load(memory.result, address, shape, guard)
                known.append(body.select(value, draw(st.sampled_from(known)), guard) if guard else value)
            case "store":
                body.store(draw(st.sampled_from(known)), memory.result, address, guard)
            case "mix":
                known.append(body.mix(draw(st.sampled_from(known)), draw(st.sampled_from(known))))
            case _:
                known.append(body.mix(body.load(memory.result, address, shape), draw(st.sampled_from(known))))
                body.store(known[-1], memory.result, draw(addresses(trips, sizes, shape)), guard)
    rows = [sizes[0] * int(np.prod(trips[i + 1 :])) for i in range(len(trips))]
    body.store(body.load(memory.result, nowhere, sizes), out, [(rows, 0), nowhere[1]])
    top.task("wild", [memory, fill.done("fill"), body.done()])
    return Wild(top.done(), sizes)


def check_wild(wild: Wild, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(plan, "STRETCH_BYTES", size)
        run_both(wild.module, {"source": NUMBERS[: int(np.prod(wild.shape))].reshape(wild.shape)}, {})


@settings(RELAXED, max_examples=60)
@given(wild_nests(), SIZES)
def test_any_accesses_as_one_iteration_after_the_other(monkeypatch: pytest.MonkeyPatch, wild: Wild, size: int) -> None:
    check_wild(wild, size, monkeypatch)


@pytest.mark.slow
@settings(RELAXED, max_examples=500)
@given(wild_nests(), SIZES)
def test_many_more_accesses_as_one_iteration_after_the_other(
    monkeypatch: pytest.MonkeyPatch, wild: Wild, size: int
) -> None:
    check_wild(wild, size, monkeypatch)


def test_words_of_a_widened_memory_move_whole() -> None:
    top = Top()
    source, out = top.memory("in", "input", [2, 3], (4, 2)), top.memory("out", "output", [3, 2], (4, 2))
    line = top.channel(fifo(4, 2))
    load, store = Body((2, 3)), Body((2, 3))
    load.write(load.load(source, [([1, 0], 0), ([0, 1], 0)], (4, 2)), line)
    store.store(store.read(line), out, [([0, 1], 0), ([1, 0], 0)])
    top.task("load", [load.done()])
    top.task("store", [store.done()])
    given = NUMBERS[:48].reshape(2, 3, 4, 2)
    got = run_both(top.done(), {"in": given}, {})["out"]
    assert np.array_equal(got, given.transpose(1, 0, 2, 3))


@pytest.mark.parametrize("narrows", [True, False])
def test_a_line_buffer_cuts_words_and_joins_them(narrows: bool) -> None:
    """Store the word when first, load a part each slot; or store a part each slot, load the whole when last."""
    top = Top()
    wide, narrow = (1, 8), (1, 2)
    source = top.memory("in", "input", [3, 8] if narrows else [12, 2])
    out = top.memory("out", "output", [12, 2] if narrows else [3, 8])
    into = top.channel(fifo(*(wide if narrows else narrow), name="into"))
    out_of = top.channel(fifo(*(narrow if narrows else wide), name="out_of"))
    line, convert, origin = buffer(1, 8, name="line"), Body((3, 4)), ([0, 0], 0)
    part = [origin, ([0, 2], 0)]
    if narrows:
        convert.store(convert.read(into, ((1, "eq", 0),)), line.result, [origin, origin], ((1, "eq", 0),))
        convert.write(convert.load(line.result, part, narrow), out_of)
    else:
        convert.store(convert.read(into), line.result, part)
        last = ((1, "eq", 3),)
        convert.write(convert.load(line.result, [origin, origin], wide, last), out_of, last)
    load, store = Body((3 if narrows else 12,)), Body((12 if narrows else 3,))
    load.write(load.load(source, [([1], 0), ([0], 0)], wide if narrows else narrow), into)
    store.store(store.read(out_of), out, [([1], 0), ([0], 0)])
    top.task("load", [load.done()])
    top.task("convert", [line, convert.done()])
    top.task("store", [store.done()])
    given = NUMBERS[:24].reshape((3, 8) if narrows else (12, 2))
    got = run_both(top.done(), {"in": given}, {})["out"]
    assert np.array_equal(got.ravel(), given.ravel())


def test_blocks_hand_over_and_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block is written in one order and read in another; stretches end inside of blocks."""
    module = transposer(blocks_read=5)
    given = NUMBERS[:60].reshape(5, 3, 4)
    for size in (1, 1000, plan.STRETCH_BYTES):
        monkeypatch.setattr(plan, "STRETCH_BYTES", size)
        got = run_both(module, {"in": given}, {})["out"]
        assert np.array_equal(got, given.transpose(0, 2, 1))


def transposer(blocks_read: int) -> ModuleOp:
    top = Top()
    source, out = top.memory("in", "input", [5, 3, 4]), top.memory("out", "output", [blocks_read, 4, 3])
    channel = top.channel(blocks(1, 3, 4))
    write, read = Body((5, 3, 4), block_loops=1), Body((blocks_read, 4, 3), block_loops=1)
    each = [([1, 0, 0], 0), ([0, 1, 0], 0), ([0, 0, 1], 0)]
    write.store(write.load(source, each, (1, 1, 1)), channel, [([0, 0, 0], 0), *each[1:]])
    read.store(read.load(channel, [([0, 0, 0], 0), each[2], each[1]], (1, 1, 1)), out, each)
    top.task("write", [write.done("write")])
    top.task("read", [read.done("read")])
    return top.done()


def refusal(module: ModuleOp, inputs: dict[str, np.ndarray], *, strict: bool = True) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        stream.run(module, inputs, {}, strict=strict)
    return caught.value


def test_missing_and_left_over_blocks_are_named() -> None:
    given = {"in": NUMBERS[:60].reshape(5, 3, 4)}
    missing = refusal(transposer(blocks_read=6), given)
    assert (missing.code, missing.where) == ("broken-stream", "read.read")
    assert missing.what == "iteration 60 reads a block that nobody wrote"
    left = refusal(transposer(blocks_read=3), given)
    assert (left.code, left.where, left.what) == ("broken-stream", "blocks", "2 blocks were written but never read")


def pipe(written: int, read: int) -> ModuleOp:
    top = Top()
    source, out = top.memory("in", "input", [16]), top.memory("out", "output", [read])
    channel, load, store = top.channel(fifo(1)), Body((written,)), Body((read,))
    load.write(load.load(source, [([1], 0)], (1,)), channel)
    store.store(store.read(channel), out, [([1], 0)])
    top.task("load", [load.done()])
    top.task("store", [store.done("drain")])
    return top.done()


@pytest.mark.parametrize("size", [1, plan.STRETCH_BYTES])
def test_missing_and_left_over_tokens_are_named(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "STRETCH_BYTES", size)
    missing = refusal(pipe(written=5, read=7), {"in": NUMBERS[:16]})
    assert (missing.code, missing.where) == ("broken-stream", "store.drain")
    assert missing.what == "iteration 5 reads a token that nobody wrote"
    left = refusal(pipe(written=9, read=7), {"in": NUMBERS[:16]})
    assert (left.code, left.where, left.what) == ("broken-stream", "fifo", "2 tokens were written but never read")


EACH = [([1, 0], 0), ([0, 1], 0)]
COLUMN = [([0, 0], 0), ([0, 1], 0)]
LAST: Terms = ((0, "eq", 2),)


def accumulator(start: Terms, written: Terms = LAST) -> ModuleOp:
    """Four sums over three steps; `start` says when a new one begins."""
    top = Top()
    source, out = top.memory("in", "input", [3, 4]), top.memory("out", "output", [1, 4])
    sums, body = buffer(1, 4, name="acc"), Body((3, 4))
    previous = body.select(body.constant(100, (1, 1)), body.load(sums.result, COLUMN, (1, 1)), start)
    total = body.mix(previous, body.load(source, EACH, (1, 1)))
    body.store(total, sums.result, COLUMN)
    body.store(total, out, COLUMN, written)
    top.task("sum", [sums, body.done()])
    return top.done()


@pytest.mark.parametrize("size", [1, plan.STRETCH_BYTES])
def test_a_sum_that_never_starts_is_noticed(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "STRETCH_BYTES", size)
    given = {"in": NUMBERS[:12].reshape(3, 4)}
    run_both(accumulator(((0, "eq", 0),)), given, {})
    run_both(accumulator(((0, "eq", 1),)), given, {})  # the sum before it goes nowhere
    error = refusal(accumulator(((0, "eq", 0), (1, "ne", 2))), given)
    assert (error.code, error.where) == ("undefined-value", "sum.nest")
    assert error.what.startswith("iteration 10 sends an undefined value to %out")
    assert "loads from %acc what nobody stored" in error.what
    stream.run(accumulator(((0, "eq", 0), (1, "ne", 2))), given, {}, strict=False)


def test_an_output_is_written_whole() -> None:
    given = {"in": NUMBERS[:12].reshape(3, 4)}
    error = refusal(accumulator(((0, "eq", 0),), (*LAST, (1, "ne", 3))), given)
    assert (error.code, error.where) == ("undefined-value", "out")
    assert error.what == "1 of 4 elements of the output are never written"


def guarded(loaded: Terms, chosen: Terms) -> ModuleOp:
    """A load that happens in some iterations, and a choice of it in some; otherwise a constant is taken."""
    top = Top()
    source, out = top.memory("in", "input", [3, 4]), top.memory("out", "output", [3, 4])
    body = Body((3, 4))
    value = body.load(source, EACH, (1, 1), loaded)
    one = body.constant(1, (1, 1))
    body.store(body.select(body.divide(one, value), one, chosen), out, EACH)
    top.task("choose", [body.done()])
    return top.done()


def test_a_guarded_load_gives_nothing_where_its_guard_does_not_hold() -> None:
    """Nor is anything computed from it there, as a division by the zeros of an empty register would be."""
    given = {"in": np.abs(NUMBERS[:12].reshape(3, 4)) + 1}
    first: Terms = ((1, "le", 1),)
    (out,) = stream.run(guarded(first, first), given, {}).values()
    assert np.array_equal(out[:, 2:], np.ones((3, 2)))
    assert np.array_equal(out[:, :2], 1 // given["in"][:, :2])
    error = refusal(guarded(first, ()), given)
    assert error.code == "undefined-value"
    assert error.what.endswith("iteration 2 sends an undefined value to %out: it loads nothing from %in there")


def test_a_store_is_seen_by_a_later_load_of_the_same_iteration() -> None:
    top = Top()
    source, out = top.memory("in", "input", [3, 4]), top.memory("out", "output", [3, 8])
    cell, body = buffer(1, 1, name="cell"), Body((3, 4))
    nowhere = [([0, 0], 0)] * 2
    body.store(body.load(source, EACH, (1, 1)), cell.result, nowhere)
    now = body.load(cell.result, nowhere, (1, 1))
    body.store(body.mix(now, now), cell.result, nowhere)
    body.store(now, out, [([1, 0], 0), ([0, 2], 0)])
    body.store(body.load(cell.result, nowhere, (1, 1)), out, [([1, 0], 0), ([0, 2], 1)])
    top.task("pass", [cell, body.done()])
    given = NUMBERS[:12].reshape(3, 4)
    got = run_both(top.done(), {"in": given}, {})["out"]
    assert np.array_equal(got[:, ::2], given)
    assert np.array_equal(got[:, 1::2], given * np.int32(4))


def test_long_nests_run_in_bounded_memory() -> None:
    """Two million iterations of sixteen lanes would take 128 MB a value."""
    count, width = 2_000_000, 16
    top = Top()
    source, out = top.memory("in", "input", [1, width]), top.memory("out", "output", [1, width])
    tokens, sums = top.channel(fifo(1, width)), buffer(1, width, name="acc")
    nowhere = [([0], 0)] * 2
    load, add = Body((count,)), Body((count,))
    load.write(load.load(source, nowhere, (1, width)), tokens)
    token, old = add.read(tokens), add.load(sums.result, nowhere, (1, width))
    add.store(add.select(token, old, ((0, "ne", 5),)), sums.result, nowhere)
    add.store(token, out, nowhere, ((0, "eq", count - 1),))
    top.task("load", [load.done()])
    top.task("add", [sums, add.done()])
    module = top.done()
    tracemalloc.start()
    try:
        out_array = stream.run(module, {"in": NUMBERS[:width]}, {})["out"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.array_equal(out_array[0], NUMBERS[:width])
    assert peak < 600e6  # all at once would be more than a gigabyte


def test_a_map_of_nothing_defined_is_not_evaluated() -> None:
    """What nobody needs is not computed, even if its other operand is a constant."""
    top = Top()
    source, out = top.memory("in", "input", [3, 4]), top.memory("out", "output", [3, 4])
    cell, body = buffer(1, 4, name="cell"), Body((3, 4))
    value = body.load(source, EACH, (1, 1))
    body.mix(body.load(cell.result, COLUMN, (1, 1)), body.constant(2, (1, 1)))
    body.store(value, cell.result, COLUMN)
    body.store(value, out, EACH)
    top.task("pass", [cell, body.done()])
    given = NUMBERS[:12].reshape(3, 4)
    assert np.array_equal(run_both(top.done(), {"in": given}, {})["out"], given)
