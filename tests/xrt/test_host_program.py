"""The native host program end to end on the test double: values, overlap, several units, what it says of trouble."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.package import hand_made
from tests.xrt.packages import DOUBLE, Host, bitstream_of, build_host, two_kernels, write_double, write_package

EXAMPLES = 21  # the sample and the held-out set of the hand-made package


@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize("sets", [1, 2])
def test_every_answer_is_that_of_the_interpreter(units: int, sets: int, doubled: Host) -> None:
    write_double(doubled.package, units)
    found = doubled.answer("--verify", "--sets", str(sets), "--repeat", "3")
    assert found["units"] == [f"penstock_top_{unit + 1}" for unit in range(units)]
    assert (found["inferences"], found["verify"]["inferences"]) == (3 * EXAMPLES, 3 * EXAMPLES)
    assert (found["verify"]["values"], found["verify"]["values_wrong"]) == (12 * EXAMPLES, 0)


def events(host: Host, log: Path, *words: str) -> list[str]:
    log.unlink(missing_ok=True)
    changes = {"PENSTOCK_XRT_DOUBLE_LOG": str(log), "XCL_EMULATION_MODE": "x"}
    replace(host, environment={**host.environment, **changes}).answer(*words)
    return log.read_text().splitlines()


def test_transfers_overlap_with_computing(doubled: Host, tmp_path: Path) -> None:
    """With two sets the next inputs are on their way before the unit is done; with one set never."""
    write_double(doubled.package, 1, milliseconds=10)
    weights, inputs = "send 1", "send 0"
    alone = events(doubled, tmp_path / "log", "--sets", "1")
    assert alone == [weights, *[inputs, "start penstock_top_1", "done penstock_top_1", "fetch 2"] * EXAMPLES]
    overlapped = events(doubled, tmp_path / "log", "--sets", "2")
    assert sorted(overlapped) == sorted(alone)
    first_done = overlapped.index("done penstock_top_1")
    assert overlapped[:first_done].count(inputs) == overlapped[:first_done].count("start penstock_top_1") == 2
    for place, event in enumerate(overlapped):
        ahead = overlapped[: place + 1].count("start penstock_top_1") - overlapped[: place + 1].count("fetch 2")
        assert 0 <= ahead <= 2, (place, event)


def test_units_share_the_work(doubled: Host, tmp_path: Path) -> None:
    """In turn, each with buffers on its own banks, and all of them busy at the same time."""
    write_double(doubled.package, 2, milliseconds=10)
    found = events(doubled, tmp_path / "log")
    starts = [event for event in found if event.startswith("start")]
    assert starts == [f"start penstock_top_{n % 2 + 1}" for n in range(EXAMPLES)]
    assert found.index("start penstock_top_2") < found.index("done penstock_top_1")
    assert {event for event in found if event.startswith("send")} == {"send 0", "send 1", "send 3", "send 4"}


def test_answers_to_ones_own_inputs(host: Host, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).uniform(-4, 4, (5, 1, 16))
    np.save(tmp_path / "x.npy", rows)
    host.answer("--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy"))
    answers = np.load(tmp_path / "y.npy")
    assert answers.dtype == np.float32
    assert (answers.reshape(5, 4) == hand_made.answers(rows.reshape(5, 16))).all()
    np.save(tmp_path / "exact.npy", hand_made.exact(rows.reshape(5, 16)))
    found = host.answer("--input", str(tmp_path / "x.npy"), "--expected", str(tmp_path / "exact.npy"))
    assert (found["verify"]["values"], found["verify"]["values_wrong"]) == (20, 0)
    raw = np.clip(np.rint(rows.astype(np.float32) / np.float32(0.125)), -128, 127).astype(np.int8)
    (tmp_path / "x.bin").write_bytes(raw.tobytes())
    host.answer("--input", str(tmp_path / "x.bin"), "--output", str(tmp_path / "z.npy"), "--exact")
    assert (np.load(tmp_path / "z.npy").reshape(5, 4) == hand_made.exact(rows.reshape(5, 16))).all()


def test_a_wrong_answer_is_an_exit_code(host: Host, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(16))
    np.save(tmp_path / "y.npy", hand_made.exact(np.zeros((1, 16))) + np.asarray([0, 1, 0, 0]))
    done = host.run("--input", str(tmp_path / "x.npy"), "--expected", str(tmp_path / "y.npy"))
    assert done.returncode == 1
    assert "3 of 4 values of 1 inferences as stored" in done.stdout
    assert done.stdout.endswith("largest difference 1\nFAILED\n")


def test_times_are_the_boards(host: Host) -> None:
    timing = host.answer("--repeat", "4")["timing"]
    assert timing["evidence"] == "board"
    for part in ("latency_us", "to_device_us", "kernel_us", "from_device_us"):
        assert 0 < timing[part]["least"] <= timing[part]["median"] <= timing[part]["most"]
    assert timing["inferences_per_second"] > 0
    emulated = replace(host, environment={**host.environment, "XCL_EMULATION_MODE": "hw_emu"})
    assert emulated.answer()["timing"] is None
    assert "not measured: XCL_EMULATION_MODE is set" in emulated.run().stdout


TROUBLE = {
    "no bitstream": ({}, ["--xclbin", "none.xclbin"], 2, "none.xclbin does not exist"),
    "no device": ({}, ["--device", "3"], 3, "device 3 cannot be opened: Could not open device with index '3'"),
    "other kernel": ({"kernel": "vadd"}, [], 3, "holds no kernel penstock_top (it holds: vadd)"),
    "other arguments": ({"argument": "z 3 input 1"}, [], 3, "the arguments of penstock_top are not those"),
    "kernel fails": ({"trouble": "fail"}, [], 3, "compute unit penstock_top_1 failed (XRT's state 5)"),
    "kernel hangs": ({"trouble": "hang"}, ["--timeout", "1", "--sets", "1"], 3, "penstock_top_1 did not end in time"),
    "no such input": ({}, ["--input", "none.npy"], 2, "none.npy cannot be opened"),
    "too many inputs": ({}, ["--input", "a.npy", "--input", "b.npy"], 2, "2 files given by --input"),
    "no package": ({}, ["--package", "nowhere"], 2, "nowhere/model/samples/input_0.npy cannot be opened"),
    "unknown option": ({}, ["--what"], 2, "there is no option --what"),
}  # fmt: skip


@pytest.mark.parametrize("case", TROUBLE)
def test_trouble_is_named(case: str, doubled: Host) -> None:
    changes, words, code, says = TROUBLE[case]
    write_double(doubled.package, 1, **changes)
    done = doubled.run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert " - " in done.stderr


def test_what_is_no_bitstream_is_refused(host: Host) -> None:
    """XRT itself would read beyond the end of a container that is cut off."""
    path = bitstream_of(host.package)
    whole = path.read_bytes()[: -len(path.read_bytes().split(b"\nxrt test double")[1]) - 16]
    for data in (b"", b"not one", whole[:200], whole[:460], whole[:-1], whole[:300] + b"\xff" * 300):
        path.write_bytes(data)
        done = host.run()
        assert (done.returncode, "is no whole bitstream - " in done.stderr) == (2, True), len(data)
    path.write_bytes(whole)
    done = host.run()
    assert (done.returncode, "cannot be read: Invalid xclbin - " in done.stderr) == (3, True)


def test_a_parameter_of_another_size_is_refused(host: Host) -> None:
    path = host.package / "parameters" / "bias.bin"
    kept = path.read_bytes()
    path.write_bytes(kept[:-4])
    try:
        done = host.run()
    finally:
        path.write_bytes(kept)
    assert (done.returncode, "bias.bin holds 12 bytes, not 16" in done.stderr) == (2, True)


@pytest.mark.parametrize("kind", ["int8", pytest.param("float32", marks=pytest.mark.slow)])
def test_kernels_that_hand_over_in_memory(kind: str, tmp_path: Path) -> None:
    """Packed and padded tensors, a buffer between two kernels, an input that nobody reads; two units."""
    package = write_package(two_kernels(kind), tmp_path / "package")
    interface = json.loads((package / "interface.json").read_text())
    assert interface["buffers"]
    assert all("valid" in interface[side][0] for side in ("inputs", "outputs"))
    assert any(entry["layout"] for side in ("inputs", "parameters", "outputs") for entry in interface[side])
    write_double(package, 2)
    program = build_host(package, DOUBLE, ("-ldl",), tmp_path / "host")
    verified = Host(package, program, {"PATH": "/usr/bin:/bin"}).answer("--verify", "--repeat", "2")["verify"]
    assert (verified["inferences"], verified["values_wrong"], verified["max_abs_error"]) == (6, 0, 0)
