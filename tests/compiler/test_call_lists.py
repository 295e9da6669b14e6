"""Layers by one start: interpreter, C++, SystemVerilog and the simulator's cycles, over lists of calls."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.backend.hls.ports import interface_of, ports_of
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.errors import PenstockError
from penstock.compiler.feeds import feeds_of
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.call_list import run_list
from penstock.compiler.interpreter.calls import example_calls, run_calls
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.program import Quantisation
from penstock.compiler.runtime.penstock_runtime import Port
from penstock.compiler.runtime.penstock_runtime.calls import CallLists, LaidOut
from penstock.compiler.simulator.call_list import cycles_of_list
from penstock.compiler.simulator.rules import OPEN_RTL
from penstock.profiling.csim import FLAGS, find_compiler
from penstock.profiling.network import network_of
from penstock.profiling.open_rtl.run import simulate_rtl
from penstock.profiling.simulated import simulate_design
from penstock.services.jobs.foretelling import run_quantised
from tests.frontend import held_models
from tests.rtl.rtl_batch import BOARD, LIBRARY

MODELS = Path(held_models.__file__)
CHAIN = f"{MODELS}:chain#"
"""Four layers, one after the other."""


def lowered_of(reference: str, platform: str = "u55c", clock: float = 300.0, quantize: str | None = None) -> Lowered:
    program = prepare(import_model(reference), quantize)
    return lower(program, default_design(read_graph(program.module), platform, clock, quantize))


def laid_out(lowered: Lowered) -> tuple[LaidOut, dict[str, str]]:
    """The first layer's inputs and all layers' weights as a list of calls; the arguments' names in the IR."""
    program, ports = lowered.program, ports_of(lowered.top)
    assert program.layers is not None
    inputs = [program.all_inputs(number, given) for number, (given, _) in enumerate(program.layers.calls)]
    frames = [
        [x.reshape(p.shape) for x, p in zip(program.quantise_inputs(one), program.signature.inputs, strict=True)]
        for one in inputs
    ]
    laid = CallLists(interface_of(lowered.top, ports, lowered.border_shapes())).lay_out(frames)
    return laid, {port.argument: port.name for port in ports}


def memories_of(laid: LaidOut, names: dict[str, str]) -> dict[str, Array]:
    return {names[argument]: memory for argument, memory in {**laid.inputs, **laid.outputs}.items()}


def interpreted(lowered: Lowered) -> list[list[Array]]:
    """What each layer leaves, at the stream level."""
    laid, names = laid_out(lowered)
    run_list(lowered.stream, memories_of(laid, names), lowered.padded.params, laid.calls)
    return laid.results(frozenset())


def call_library(lowered: Lowered, folder: Path) -> Callable[[LaidOut, CallLists], None]:
    """The C++, compiled: it runs a list by one call of its top."""
    emit(lowered, folder, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    sources = [str(folder / name) for name in ("hls/penstock_top.cpp", "csim/penstock_csim.cpp")]
    include = ["-I", str(folder / "csim" / "include"), "-I", str(folder / "hls")]
    library = folder / "design.so"
    subprocess.run([find_compiler(), *FLAGS, "-shared", "-fPIC", *include, *sources, "-o", str(library)], check=True)

    def call(laid: LaidOut, lists: CallLists) -> None:
        sides = [list(laid.inputs.values()), [laid.calls], list(laid.outputs.values())]
        pointers = [(ctypes.c_void_p * len(side))(*(memory.ctypes.data for memory in side)) for side in sides]
        slots = lists.slots(laid)
        assert ctypes.CDLL(str(library)).penstock_calls(*pointers, ctypes.c_void_p(slots.ctypes.data)) == 0

    return call


def in_cpp(lowered: Lowered, folder: Path) -> list[list[Array]]:
    """What each layer leaves, by the C++."""
    laid, _ = laid_out(lowered)
    lists = CallLists(interface_of(lowered.top, ports_of(lowered.top), lowered.border_shapes()))
    call_library(lowered, folder)(laid, lists)
    return laid.results(frozenset())


def equal(ours: Sequence[Sequence[Array]], theirs: Sequence[Sequence[Array]]) -> bool:
    return all(
        np.array_equal(a, b) for one, other in zip(ours, theirs, strict=True) for a, b in zip(one, other, strict=True)
    )


def test_a_list_of_calls_is_the_layers_one_after_the_other() -> None:
    lowered = lowered_of(CHAIN)
    layers = lowered.program.layers
    assert layers is not None
    assert lowered.top.fed == {"output_0": "tensors_0"}
    found = interpreted(lowered)
    for (_, answered), made in zip(layers.calls, found, strict=True):
        np.testing.assert_allclose(made[0], answered[0], rtol=1e-5, atol=1e-6)


def test_quantised_layers_hand_on_their_own_integers() -> None:
    """What the model's graph hands from layer to layer as real numbers, and the integers themselves: the same."""
    program = prepare(import_model(CHAIN), "w8a8")
    assert feeds_of(program).ports == {1: "tensors_0"}
    (whole,) = run_calls(program, example_calls(program), lambda one, given: run_quantised(one, [given])[0])
    assert program.layers is not None
    ports, sides = program.signature.inputs, program.signature.outputs
    made = [np.zeros(0), program.quantise_inputs(program.all_inputs(0, program.layers.inputs))[0]]
    assert ports[0].name == "tensors_0"
    for number in range(len(program.layers.names)):
        made = run(program, [made[1].reshape(ports[0].shape), *program.all_inputs(number, program.layers.inputs)[1:]])
        assert made[1].dtype == np.int8
    wanted = program.dequantise_outputs([o.reshape(p.shape) for o, p in zip(made, sides, strict=True)])
    np.testing.assert_array_equal(whole[0], wanted[0])


def test_what_grows_from_layer_to_layer_is_handed_on_as_it_is() -> None:
    """One scale for what all layers take would leave the first one nothing of its rows, and its norm makes all of them.

    The host is answered what the next layer takes: no second answer is computed for it.
    """
    program = prepare(import_model(f"{MODELS}:summed#"), "w8a8")
    assert feeds_of(program).ports == {0: "tensors_0"}
    assert [port.dtype for port in program.signature.outputs] == ["float32"]
    assert program.signature.inputs[0].dtype == "float32"
    module, (x,) = held_models.summed()
    (whole,) = run_calls(program, example_calls(program), lambda one, given: run_quantised(one, [given])[0])
    with torch.no_grad():
        wanted = module(x).numpy()
    assert np.max(np.abs(whole[0] - wanted)) < 0.03 * np.max(np.abs(wanted)), "eight bits were 0.55 off"


def test_eight_bits_come_through_real_numbers_as_they_were() -> None:
    numbers = np.arange(-128, 128).astype(np.int8)
    for scale in (10.0 ** np.random.default_rng(5).uniform(-44, 36, 500)).astype(np.float32):
        port, there = Port("x", (256,), "int8", float(scale)), Quantisation(float(scale), "int8")
        np.testing.assert_array_equal(there.quantise(there.dequantise(numbers)), numbers)
        np.testing.assert_array_equal(port.to_accelerator(port.from_accelerator(numbers)), numbers)


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "quantize"), [
    ("chain#", None), ("between#blocks", None), ("chain#", "w8a8"), ("summed#", "w8a8")
])  # fmt: skip
def test_the_cpp_runs_a_list_by_one_call_of_its_top(reference: str, quantize: str | None, tmp_path: Path) -> None:
    lowered = lowered_of(f"{MODELS}:{reference}", quantize=quantize)
    twice = quantize is not None and reference != "summed#"
    assert lowered.top.fed == {f"output_{int(twice)}": "tensors_0"}, "the host has an exact answer too"
    assert equal(interpreted(lowered), in_cpp(lowered, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_the_sequencer_of_the_systemverilog_has_the_simulators_cycles(quantize: str | None) -> None:
    lowered = lowered_of(CHAIN, "ecp5-85k", 100.0, quantize)
    wanted = interpreted(lowered)
    laid, names = laid_out(lowered)
    memories, fed = memories_of(laid, names), lowered.top.fed
    sizes = {name: memory.size for name, memory in lowered.memories(frames(lowered)[0]).items()}
    slots = {name: memories[name].size // size for name, size in sizes.items()}
    slots |= {name: len(wanted) for name in memories if name not in sizes and name not in fed}
    design = emit_rtl(lowered.stream, LIBRARY, lowered.padded.params, calls=len(wanted), slots=slots)
    read = {port.argument or "" for port in design.ports if port.kind == "memory_read"}
    given = {name: memories.get(name, laid.calls) for name in read}
    simulated = simulate_rtl(design, given)
    left = simulated.outputs[next(iter(fed.values()))].reshape(len(wanted) + 1, -1)
    assert equal([[row] for row in left[1:]], [[made[-1].reshape(-1)] for made in wanted])
    if quantize:
        exact = simulated.outputs["output_0"].reshape(len(wanted), -1)
        assert equal([[row] for row in exact], [[made[0].reshape(-1)] for made in wanted])
    one = simulate_design(network_of(lowered.top, LIBRARY), BOARD, 100.0).latency
    cycles = cycles_of_list(one, len(wanted), len(lowered.top.moved), OPEN_RTL, 1)
    assert simulated.done[0] + 1 == cycles.total


def frames(lowered: Lowered) -> list[list[Array]]:
    program = lowered.program
    assert program.layers is not None
    return [program.quantise_inputs(program.all_inputs(n, given)) for n, (given, _) in enumerate(program.layers.calls)]


@pytest.mark.parametrize(
    ("reference", "obstacle"),
    [
        ("halved#", "the host, or a layer before the last, makes of a layer's answer"),
        ("apart#", "no layer is given what the one before it answers"),
    ],
)
def test_what_stands_between_layers_is_named(reference: str, obstacle: str) -> None:
    program = prepare(import_model(f"{MODELS}:{reference}"))
    found = feeds_of(program)
    assert not found.ports
    assert obstacle in found.obstacle


@pytest.mark.slow
def test_layers_with_the_host_between_them_run_no_lists() -> None:
    lowered = lowered_of(f"{MODELS}:halved#")
    assert lowered.top.calls is None
    with pytest.raises(PenstockError, match="runs no lists of calls"):
        emit_rtl(lowered.stream, LIBRARY, {}, calls=2)
