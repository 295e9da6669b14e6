"""Bodies written by hand: chosen where they win, refused at the first clause of their contract that they break."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.design import Design
from penstock.compiler.dialects.injected import Injected
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.injected.predicted import predict
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import EXAMPLES, read

ECP5, CARD = "ecp5-85k", "u55c"
DOT, SOFTMAX = ((EXAMPLES / f"{name}.py").read_text() for name in ("dot", "softmax"))
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def evaluator_of(folder: Path, text: str, board: str) -> Evaluator:
    path = folder / "written.py"
    path.write_text(text)
    return Evaluator.create(prepare(import_model(str(path))), board)


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def refusal(folder: Path, text: str, board: str = ECP5) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        evaluator_of(folder, text, board)
    return caught.value


def test_the_search_takes_the_faster_body_and_hardware_takes_its_cycles(tmp_path: Path) -> None:
    evaluator = evaluator_of(tmp_path, DOT, ECP5)
    assert evaluator.space.choices["mapping"] == ("as-written", "use(dot, by_hand)")
    settings = [evaluator.evaluate(one) for one in evaluator.space.first_settings()]
    best = min(settings, key=lambda one: one.values)
    assert best.design.mapping == ("use(dot, by_hand)",)
    lowered = lower(evaluator.program, finish(evaluator, best).design)
    core = WholeCore.of(lowered, evaluator.platform)
    assert "module dot8" in core.design.files["body_dot8.sv"]
    assert "dot8 body (" in core.design.files["task_dot.sv"]
    assert_equal_in_verilator(lowered, make_inputs(lowered, random_sets=1), ECP5)


BREACHES = {
    "ii: declared 1, measured 2": [
        (
            "wire takes = go &",
            "logic turn; always_ff @(posedge clk) turn <= ~rst & ~takes;\n    wire takes = turn & go &",
        )
    ],
    "depth: declared 4, measured 3": [("depth=3", "depth=4")],
    "depth: declared 3, measured 3 or 4": [  # what is inside waits where input is missing
        ("wire go = ~c_tvalid | c_tready;", "logic was; wire go = (~in_sums | c_tready) & (takes | was);"),
        ("wire takes = go &", "always_ff @(posedge clk) was <= ~takes;\n    wire takes = (~in_sums | c_tready) &"),
        ("assign c_tvalid = in_sums;", "assign c_tvalid = in_sums & go;"),
    ],
    "answers": [("products[2 * i + 1]);", "products[2 * i]);")],
    "tokens: declared 16 of c a run": [
        (
            "assign c_tvalid = in_sums;",
            "logic [3:0] n; always_ff @(posedge clk) n <= rst ? 0 : n + (in_sums & go);\n"
            "    assign c_tvalid = in_sums & (n != 7);",
        )
    ],
    "tokens: declared 15 of c": [('writes={"c": ROWS}', 'writes={"c": ROWS - 1}')],
}  # fmt: skip


@pytest.mark.parametrize("clause", BREACHES)
def test_each_clause_broken_is_named_with_what_was_measured(clause: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, replaced(DOT, *BREACHES[clause]))
    assert error.code == "broken-contract"
    assert f"by_hand: {clause}" in error.what
    assert "declared" in error.what
    assert error.where.startswith("written.py:")
    assert error.hint


RESTLESS = {
    "it does not hold": [("wire go = ~c_tvalid | c_tready;", "wire go = 1'b1;")],
    "it withdraws what is not taken": [
        ("wire go = ~c_tvalid | c_tready;", "wire go = ~in_sums | (c_tvalid & c_tready);\n    logic was;"),
        (
            "assign c_tvalid = in_sums;",
            "always_ff @(posedge clk) was <= c_tvalid & ~c_tready;\n    assign c_tvalid = in_sums & ~was;",
        ),
    ],
}


@pytest.mark.parametrize("how", RESTLESS)
def test_a_body_that_does_not_stand_still_as_promised(how: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, replaced(DOT, *RESTLESS[how]))
    assert (error.code, "by_hand: stalls: declared holds" in error.what) == ("broken-contract", True), error.what


@needs_compiler
def test_a_body_in_cpp_is_chosen_where_it_is_sooner_and_smaller(tmp_path: Path) -> None:
    evaluator = evaluator_of(tmp_path, SOFTMAX, CARD)
    settings = [evaluator.evaluate(one) for one in evaluator.space.first_settings()]
    as_written, by_hand = (next(s for s in settings if bool(s.design.mapping) is used) for used in (False, True))
    assert all(hand < own for hand, own in zip(by_hand.values, as_written.values, strict=True))
    [declared] = [one.body for one in read(SOFTMAX).program.bodies]
    predicted = predict(declared, evaluator.platform, evaluator.clock_mhz)
    assert (predicted.ii, predicted.depth) == (declared.ii, declared.depth), predicted


CPP_BREACHES = {
    "answers": [("e[i] / total", "2.0f * e[i] / total")],
    "tokens": [("r < 16", "r < 15")],
    "tokens: declared 16 of scores": [("r < 16", "r < 17")],
}


@needs_compiler
@pytest.mark.parametrize("clause", CPP_BREACHES)
def test_a_body_in_cpp_that_breaks_a_clause(clause: str, tmp_path: Path) -> None:
    error = refusal(tmp_path, replaced(SOFTMAX, *CPP_BREACHES[clause]), CARD)
    assert (error.code, f"by_hand: {clause}" in error.what) == ("broken-contract", True)


SUMMED = """
void softmax8(hls::stream<row_t> &scores, hls::stream<row_t> &weights) {
    float all = 0;"""
PLAIN = "\nvoid softmax8(hls::stream<row_t> &scores, hls::stream<row_t> &weights) {"


@needs_compiler
def test_no_contract_in_cpp_promises_an_ii_below_its_source(tmp_path: Path) -> None:
    """A sum over rounds waits for its own addition; it is not used, so that the answers are right."""
    text = replaced(
        SOFTMAX, (PLAIN, SUMMED), ("weights.write(e);", "all += total; weights.write(all == -1.0f ? row : e);")
    )
    error = refusal(tmp_path, text, CARD)
    assert error.code == "broken-contract"
    assert "by_hand: ii: declared 1, predicted " in error.what
    assert "of the body" in error.what
    assert "penstock analyse" in error.limit


def test_a_body_that_is_not_one_pipeline_is_said_not_to_be_timed() -> None:
    loop = "    for (int i = 0; i < 4; ++i) b.write(a.read());\n"
    text = f"void f(hls::stream<int> &a, hls::stream<int> &b) {{\n{loop}{loop}}}\n"
    body = Injected("two", "cpp", text, "f", (("a", 8),), (("b", 8),), 1, 3, "stops")
    found = predict(body, load_platform(CARD), 250.0)
    assert "2 pipelines" in found.said(body)
    unread = predict(replace(body, text="void f(hls::stream<int> &a) { goto x; x: ; }\n"), load_platform(CARD), 250.0)
    assert "was not timed" in unread.said(body)


@needs_compiler
def test_cpp_that_is_none_is_the_bodys_fault(tmp_path: Path) -> None:
    error = refusal(tmp_path, replaced(SOFTMAX, ("const float total =", "const flaot total =")), CARD)
    assert "does not compile" in error.what
    assert "flaot" in error.limit


def test_systemverilog_that_is_none_is_the_bodys_fault(tmp_path: Path) -> None:
    error = refusal(tmp_path, replaced(DOT, ("assign a_tready = takes;", "assign a_tready = = takes;")))
    assert "Verilator does not build it" in error.what
    assert "please report" not in error.hint


def test_a_body_of_the_other_route_is_neither_tried_nor_translated(tmp_path: Path) -> None:
    evaluator = evaluator_of(tmp_path, SOFTMAX, ECP5)
    assert evaluator.space.choices["mapping"] == ("as-written",)
    design = Design(ECP5, evaluator.clock_mhz, {}, mapping=("use(softmax, by_hand)",))
    with pytest.raises(PenstockError, match="by_hand is HLS C\\+\\+, and ecp5-85k is built of SystemVerilog"):
        lower(evaluator.program, design)


OUTSIDE = ("$system", "$fopen", "$readmemh", "`include", "import", "\\\\escaped", '\\"')


@pytest.mark.parametrize("word", OUTSIDE)
def test_what_reaches_outside_is_refused_before_any_tool(word: str, tmp_path: Path) -> None:
    text = replaced(DOT, ("    wire go =", f"    initial {word} x;\n    wire go ="))
    with pytest.raises(PenstockError, match="the SystemVerilog says"):
        import_model(str(_kept(tmp_path, text)))


def test_no_comment_hides_what_reaches_outside(tmp_path: Path) -> None:
    text = replaced(DOT, ("    wire go =", "    // /*\n    initial $finish; // */\n    wire go ="))
    with pytest.raises(PenstockError, match="finish"):
        import_model(str(_kept(tmp_path, text)))


def _kept(folder: Path, text: str) -> Path:
    path = folder / "written.py"
    path.write_text(text)
    return path


WRONG = {
    'inject(dot, "x", systemverilog=DOT)': "does not say module",
    'inject(dot, systemverilog=DOT)': "a task and a name",
    'inject(tod, "x", systemverilog=DOT)': "there is no task 'tod' above",
    'inject(dot, "x", cpp=DOT, systemverilog=DOT)': "written in one language",
    'inject(dot, "x", verilog=DOT)': "verilog is no part of a contract",
    'inject(feed_A, "x", systemverilog=DOT, module="dot8", reads={"c": 1}, writes={"c": 1}, ii=1, depth=1)': "tensor",
    'inject(dot, "x", systemverilog=DOT, module="dot9", reads={"a": 1}, writes={"c": 1}, ii=1, depth=1)': "module dot9",
    'inject(dot, "x", systemverilog=DOT, module="dot8", reads={"a": ROWS}, writes={"c": ROWS}, ii=1, depth=1)': "of b",
    'inject(dot, "x", systemverilog=DOT, module="dot8", reads={"z": 1}, writes={"c": ROWS}, ii=0, depth=1)': "ii is 0",
    'inject(dot, "x", systemverilog=DOT, module="dot8", reads={"z": 1}, writes={"c": ROWS}, ii=1, depth=1)': "none",
    'inject(dot, "x", systemverilog=DOT, module="dot8", reads={"z": 1}, writes={"c": 1}, ii=1, depth=1, stalls="no")':
        "cannot promise stalls='no'",
    'inject(dot, "x", systemverilog="gone.sv", module="dot8", reads={"z": 1}, writes={"c": 1}, ii=1, depth=1)':
        "one line",
}  # fmt: skip


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_contract_is_refused_at_its_line(call: str) -> None:
    body = DOT[DOT.index("ROWS = 16") : DOT.index("    inject(\n")]
    with pytest.raises(PenstockError, match=WRONG[call]):
        read(f"{body}    {call}\n")


def test_a_body_beside_the_program_is_read_in(tmp_path: Path) -> None:
    start, end = DOT.index('DOT = """') + len('DOT = """'), DOT.index('"""\n\n\n@program')
    (tmp_path / "dot.sv").write_text(DOT[start:end])
    text = replaced(DOT[: start - len('DOT = """')] + DOT[end + 3 :], ("systemverilog=DOT", 'systemverilog="dot.sv"'))
    program = import_model(str(_kept(tmp_path, text)))
    assert "module dot8" in str(program.module)
    with pytest.raises(PenstockError, match=r"no file 'tod\.sv' beside the program"):
        import_model(str(_kept(tmp_path, replaced(text, ("dot.sv", "tod.sv")))))
    with pytest.raises(PenstockError, match=r"no file '\.\./dot\.sv' beside"):
        import_model(str(_kept(tmp_path, replaced(text, ("dot.sv", "../dot.sv")))))


def test_a_design_names_bodies_that_are_there(tmp_path: Path) -> None:
    program = prepare(import_model(str(_kept(tmp_path, DOT))))
    for step, said in {
        "use(dot, by_foot)": "has no body 'by_foot'",
        "use(store, by_hand)": "store has no body",
    }.items():
        with pytest.raises(PenstockError, match=said):
            lower(program, Design(ECP5, 100.0, {}, mapping=(step,)))


def test_equal_instances_share_the_module_around_their_body(tmp_path: Path) -> None:
    text = replaced(
        DOT,
        ("a, b = Stream[int8, (8,)], Stream[int8, (8,)]", "a, b = Stream[int8, (8,)][2], Stream[int8, (8,)][2]"),
        ("c = Stream[int32]", "c = Stream[int32][2]"),
        (
            "A: int8[ROWS, 8], B: int8[ROWS, 8], C: int32[ROWS]",
            "A: int8[2, ROWS, 8], B: int8[2, ROWS, 8], C: int32[2, ROWS]",
        ),
        ("    @task\n    def dot():", "    @task(grid=(2,))\n    def dot(i):"),
        ("c.put(sum(a.get() * b.get(), axis=0))", "c[i].put(sum(a[i].get() * b[i].get(), axis=0))"),
    )
    program = prepare(import_model(str(_kept(tmp_path, text))))
    lowered = lower(program, Design(ECP5, 100.0, {}, mapping=("use(dot, by_hand)",)))
    design = emit_rtl(lowered.stream, load_library("open-ecp5", 100.0), {})
    assert design.files["penstock_core.sv"].count("task_dot_0 dot_") == 2
    assert "task_dot_1.sv" not in design.files
