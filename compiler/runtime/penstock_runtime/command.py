"""The command line of a package: `python run.py`. Exit codes: 0 done, 1 a check failed, 2 an error."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from .accelerator import Accelerator, here, refuse
from .backends import BACKENDS, open_backend
from .errors import PackageError
from .host import compare_whole
from .npy import BadArraysError, read_header, read_values
from .package import Evaluation, Package, Samples, open_package
from .ports import Array, largest_difference, same_bits, same_values

SECONDS_BETWEEN = 2.0
SHADES = " .:-=+*#%@"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with open_package(options.package or here()) as package:
            problems = [] if options.no_check else package.problems()
            if options.self_test and problems:
                return report_problems(package, problems, options.json)
            refuse(problems)
            accelerator = Accelerator(package, open_backend(options.backend, package, options.port))
            try:
                return _act(accelerator, options)
            finally:
                accelerator.backend.close()
    except PackageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _act(accelerator: Accelerator, options: argparse.Namespace) -> int:
    if options.self_test:
        return self_test(accelerator, options.json)
    if options.evaluate:
        return evaluate(accelerator, options.json)
    if options.example is not None:
        return example(accelerator, options.example, options.json)
    if options.generate is not None:
        return write_text(accelerator, options)
    return run_files(accelerator, options.input, options.output)


def report_problems(package: Package, problems: Sequence[str], as_json: bool) -> int:
    """The files that differ, all of them; nothing in the package is compiled or run."""
    count = len(package.paths())
    lines = [
        f"files     {len(problems)} of {count} differ from the manifest",
        *(f"          {p}" for p in problems),
    ]
    _show({"files": count, "files_changed": list(problems), "ok": False}, [*lines, "FAILED"], as_json)
    return 1


def self_test(accelerator: Accelerator, as_json: bool) -> int:
    """Samples and probes bit for bit against what was computed when the package was made; samples beside PyTorch."""
    package = accelerator.package
    count = len(package.paths())
    result: dict[str, Any] = {"files": count, "files_changed": []}
    backend = accelerator.backend
    result.update(backend=backend.name, evidence=backend.evidence)
    lines = [f"files     {count} of {count} as built", f"backend   {backend.name}: {backend.description}"]
    passed = True
    samples = package.samples()
    if samples is None:
        lines.append("samples   none stored in this package")
    else:
        exact = accelerator.run_exact(samples.inputs)
        if samples.expected:
            counted = _count(exact, samples.expected, accelerator.backend.float_tolerance)
            result.update(counted)
            lines.append(f"samples   {_counted(counted, 'the interpreter', accelerator, exact)}")
            passed = passed and counted["within_tolerance"] == counted["values"]
        tolerance = package.json("report.json")["verify"]["pytorch"]["tolerance"]
        pairs = list(zip(accelerator.dequantise(exact), samples.outputs))
        apart = [largest_difference(a, b.reshape(a.shape)) for a, b in pairs]
        error, undefined = max(one for one, _ in apart), sum(odd for _, odd in apart)
        result.update(max_abs_error=error, undefined=undefined, tolerance=tolerance)
        reference = package.json("report.json")["verify"]["pytorch"].get("reference", "PyTorch")
        lines.append(f"{reference:<9} largest difference {error:.6g}, tolerance {_or_not_measured(tolerance)}")
        passed = _undefined(lines, undefined) and passed and (tolerance is None or error <= tolerance)
    passed = _other_lengths(accelerator, result, lines) and passed
    passed = _probes(accelerator, result, lines) and passed
    whole = package.host_samples()
    if whole is not None:
        passed = _whole_model(accelerator, whole, result, lines) and passed
    result["ok"] = passed
    _show(result, [*lines, "ok" if passed else "FAILED"], as_json)
    return 0 if passed else 1


def _other_lengths(accelerator: Accelerator, result: dict[str, Any], lines: list[str]) -> bool:
    """Example inputs of other sizes, where each call says its size: the bits of the interpreter."""
    samples = accelerator.package.length_samples()
    if not samples:
        return True
    exact = [value for one in samples for value in accelerator.run_exact(one.inputs)]
    expected = [value for one in samples for value in one.expected]
    counted = _count(exact, expected, accelerator.backend.float_tolerance)
    result.update(lengths={"samples": len(samples), **counted})
    lines.append(f"lengths   {_counted(counted, f'the interpreter, {len(samples)} other sizes', accelerator, exact)}")
    return counted["within_tolerance"] == counted["values"]


def _probes(accelerator: Accelerator, result: dict[str, Any], lines: list[str]) -> bool:
    """Inputs that make every weight matter: the bits that the C++ gave when the package was made."""
    probes = accelerator.package.probes()
    if probes is None:
        return True
    most = probes.gentle if accelerator.backend.float_tolerance else accelerator.backend.most_probes
    frames = probes.frames()[:most]
    answers = accelerator.run_numbers(frames)
    exact = [np.stack([answer[port] for answer in answers]) for port in range(len(probes.expected))]
    counted = _count(exact, [port[: len(frames)] for port in probes.expected], accelerator.backend.float_tolerance)
    result.update(probes={"frames": len(frames), **counted})
    of = "" if len(frames) == len(probes.inputs[0]) else f" of {len(probes.inputs[0])}"
    lines.append(f"probes    {_counted(counted, f'the C++, {len(frames)}{of} inputs', accelerator, exact)}")
    return counted["within_tolerance"] == counted["values"]


def _count(ours: Sequence[Array], expected: Sequence[Array], tolerance: float) -> dict[str, int]:
    """How many values there are, how many are the same, and how many are so or as near as the backend promises."""
    pairs = [(a, b.reshape(a.shape)) for a, b in zip(ours, expected)]
    return {
        "values": sum(a.size for a, _ in pairs),
        "bits_equal": sum(int(np.count_nonzero(same_bits(a, b))) for a, b in pairs),
        "within_tolerance": sum(int(np.count_nonzero(same_values(a, b, tolerance))) for a, b in pairs),
    }


def _counted(counted: dict[str, int], reference: str, accelerator: Accelerator, exact: Sequence[Array]) -> str:
    text = f"{counted['bits_equal']} of {counted['values']} values have the bits of {reference}"
    if _but_floats(accelerator.backend.float_tolerance, exact):
        tolerance = accelerator.backend.float_tolerance
        text += f"; {counted['within_tolerance']} are within {tolerance:g} of the largest, which is promised"
    return text


def _whole_model(accelerator: Accelerator, samples: Samples, result: dict[str, Any], lines: list[str]) -> bool:
    """With the parts on this machine: indices equal PyTorch's, numbers within the tolerance that the report names."""
    accelerator.reset()
    answers = accelerator.run_call(samples.inputs)[1]
    accelerator.reset()
    checked = accelerator.package.json("report.json")["verify"]["whole"]
    judged = compare_whole(answers, samples.outputs)
    tolerance, all_equal = checked["tolerance"], checked["indices_must_equal"]
    error, found, total = judged["max_abs_error"], judged["indices_equal"], judged["indices"]
    result.update(whole={**judged, "tolerance": tolerance})
    if error is not None:
        lines.append(
            f"whole     with the host: largest difference {error:.6g}, tolerance {_or_not_measured(tolerance)}"
        )
    if total:
        lines.append(f"whole     with the host: {found} of {total} indices equal PyTorch's")
    within = error is None or tolerance is None or error <= tolerance
    return _undefined(lines, judged["undefined"]) and within and (found == total or not all_equal)


def _undefined(lines: list[str], count: int) -> bool:
    """Whether no value is NaN or infinite on one side alone; they are said otherwise."""
    if count:
        lines.append(f"          {count} values are NaN or infinite here or there, but not both")
    return not count


def evaluate(accelerator: Accelerator, as_json: bool) -> int:
    """The held-out set: how often PyTorch and the accelerator are right, and how often they agree."""
    held_out = _held_out(accelerator)
    exact, answers = accelerator.run_rows_exact(held_out.inputs)
    answer = _classes(answers)
    reference = _classes(held_out.outputs)
    total = len(held_out.labels)
    right = int(np.count_nonzero(answer == held_out.labels))
    reference_right = int(np.count_nonzero(reference == held_out.labels))
    same = int(np.count_nonzero(answer == reference))
    result: dict[str, Any] = {
        "name": held_out.name, "examples": total, "backend": accelerator.backend.name,
        "evidence": accelerator.backend.evidence, "float_accuracy": reference_right / total,
        "accelerator_accuracy": right / total, "agreement": same / total,
    }  # fmt: skip
    lines = [
        f"held-out set   {held_out.name}, {total} examples",
        f"backend        {accelerator.backend.name}: {accelerator.backend.description}",
        f"PyTorch        {reference_right} right, {reference_right / total:.2%}",
        f"accelerator    {right} right, {right / total:.2%}",
        f"same class     {same} of {total}, {same / total:.2%}",
    ]
    passed = True
    if held_out.expected is not None:
        checked = len(held_out.expected)
        expected = held_out.expected.reshape(checked, -1)
        tolerance = accelerator.backend.float_tolerance
        ours = exact[:checked].reshape(checked, -1)
        equal = int(np.count_nonzero(same_bits(ours, expected).all(axis=1)))
        within = int(np.count_nonzero(same_values(ours, expected, tolerance).all(axis=1)))
        result.update(examples_checked=checked, examples_bits_equal=equal, examples_within_tolerance=within)
        lines.append(f"exact bits     {equal} of {checked} examples have the bits of the interpreter")
        if _but_floats(tolerance, [ours]):
            lines.append(f"               {within} are within {tolerance:g} of the largest, which is promised")
        passed = within == checked
    _show(result, lines, as_json)
    return 0 if passed else 1


def example(accelerator: Accelerator, index: int, as_json: bool) -> int:
    """One held-out example, with its picture where it looks like one."""
    held_out = _held_out(accelerator)
    if not 0 <= index < len(held_out.labels):
        raise PackageError(f"there is no example {index}", f"choose one from 0 to {len(held_out.labels) - 1}")
    row = held_out.inputs[index]
    answer = accelerator.run_rows(held_out.inputs[index : index + 1])[0]
    found, reference = int(_classes(answer[np.newaxis])[0]), int(_classes(held_out.outputs[[index]])[0])
    result: dict[str, Any] = {
        "example": index, "label": int(held_out.labels[index]), "pytorch": reference, "accelerator": found,
        "scores": [s.item() for s in answer.reshape(-1)],
    }  # fmt: skip
    lines = [*_picture(row), f"label {held_out.labels[index]}, PyTorch {reference}, accelerator {found}"]
    _show(result, lines, as_json)
    return 0


def write_text(accelerator: Accelerator, options: argparse.Namespace) -> int:
    """Goes on with a prompt, on the screen as it is written; how fast, beside it."""
    on_screen = sys.stderr.isatty()
    said = time.monotonic()

    def show(piece: str, count: int, speed: float) -> None:
        nonlocal said
        print(piece, end="", flush=True)
        if on_screen and count:  # behind the text, until the next piece is written over it
            print(f"\x1b7  [{count} tokens, {speed:.1f}/s]\x1b8", end="", flush=True, file=sys.stderr)
        elif count and time.monotonic() - said > SECONDS_BETWEEN:
            said = time.monotonic()
            print(f"\n[{count} tokens, {speed:.1f}/s]", flush=True, file=sys.stderr)

    made = accelerator.generate(
        options.generate, options.tokens, temperature=options.temperature, top_k=options.top_k, seed=options.seed,
        show=None if options.json else show,
    )  # fmt: skip
    backend = accelerator.backend
    if options.json:
        print(json.dumps({
            "text": made.text, "tokens": made.tokens, "prompt_tokens": made.prompt_tokens, "backend": backend.name,
            "first_seconds": made.first_seconds, "seconds": made.seconds, "tokens_per_second": made.tokens_per_second,
        }))  # fmt: skip
        return 0
    print("\x1b[K" if on_screen else "", flush=True)
    note = "" if backend.name in ("serial", "xrt") else f" ({backend.name} here: not the accelerator's speed)"
    print(
        f"{len(made.tokens)} tokens behind {made.prompt_tokens}, the first after {made.first_seconds:.2f} s, "
        f"{made.tokens_per_second:.1f} a second{note}",
        file=sys.stderr,
    )
    return 0


def run_files(accelerator: Accelerator, inputs: Sequence[Path], output: Path | None) -> int:
    """Inputs from .npy files, one a port, to the screen or to a file."""
    arrays = accelerator.run_all([_read(path) for path in inputs])
    for index, (port, array) in enumerate(zip(accelerator.outputs, arrays)):
        if output is None:
            print(f"{port.name} {array.shape} {array.dtype}")
            print(np.array2string(array, precision=6, threshold=200, max_line_width=100))
        else:
            path = output if len(arrays) == 1 else output.with_name(f"{output.stem}_{index}.npy")
            with path.open("wb") as stream:
                np.save(stream, array)
            print(f"{port.name} {array.shape} -> {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description="Run the accelerator of this package.",
        epilog="Exit codes: 0 done, 1 a check failed, 2 an error in the input, the package or the machine.",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--self-test", action="store_true", help="check the files' hashes and the stored samples")
    action.add_argument("--evaluate", action="store_true", help="accuracy on the held-out set")
    action.add_argument("--example", "--digit", type=int, metavar="N", help="run held-out example N")
    action.add_argument("--input", type=Path, nargs="+", metavar="X.npy", help="run arrays from files")
    action.add_argument("--generate", metavar="PROMPT", help="a language model goes on with this text")
    parser.add_argument("--tokens", type=int, default=64, help="how many tokens --generate writes (64)")
    parser.add_argument("--temperature", type=float, default=0.0, help="draw tokens, instead of taking the likeliest")
    parser.add_argument("--top-k", type=int, help="draw among the so many likeliest")
    parser.add_argument("--seed", type=int, help="draw the same again")
    parser.add_argument("--output", type=Path, metavar="Y.npy", help="where to write the answer to --input")
    parser.add_argument("--package", type=Path, help="another package (folder or archive) than this one")
    names = ", ".join(sorted(BACKENDS))
    parser.add_argument("--backend", help=f"one of: {names}; xrt if there is an xclbin and pyxrt, else emulation")
    parser.add_argument("--port", help="the board's serial port, for --backend serial; the device's number, for xrt")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-check", action="store_true", help="do not compare the files with the manifest")
    return parser


def _held_out(accelerator: Accelerator) -> Evaluation:
    held_out = accelerator.package.evaluation()
    if held_out is None:
        raise PackageError("this package has no held-out set", "use --input or --self-test")
    return held_out


def _classes(scores: Array) -> Array:
    """The largest score's place, or what the model itself says where its answer is one whole number a row."""
    if scores.dtype.kind in "iu" and scores.size == len(scores):
        return scores.reshape(-1)
    return np.argmax(scores.reshape(len(scores), -1), axis=1)


def _picture(values: Array) -> list[str]:
    """A square grey-scale image as text; nothing where the input is no such image."""
    side = round(values.size**0.5)
    if side * side != values.size or not 4 <= side <= 32:
        return []
    low, high = float(values.min()), float(values.max())
    scaled = (values.reshape(side, side) - low) / ((high - low) or 1.0)
    shades = np.clip(np.rint(scaled * (len(SHADES) - 1)), 0, len(SHADES) - 1).astype(int)
    return ["".join(SHADES[s] * 2 for s in row) for row in shades]


def _read(path: Path) -> Array:
    try:
        with path.open("rb") as file:
            if is_zipfile(file):
                raise PackageError(f"{path} is an archive of arrays", "give one .npy for each input, in their order")
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            return read_values(file, read_header(file, size, str(path)), str(path))
    except (OSError, BadArraysError) as error:
        raise PackageError(f"{path} cannot be read as an array ({error})", "write it with numpy.save") from error


def _but_floats(tolerance: float, outputs: Sequence[Array]) -> str:
    """What is not promised bit for bit, in words; nothing where everything is."""
    floats = any(values.dtype.kind == "f" for values in outputs)
    return f", floats within {tolerance:g} of the largest" if tolerance and floats else ""


def _or_not_measured(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.6g}"


def _show(result: dict[str, Any], lines: Sequence[str], as_json: bool) -> None:
    print(json.dumps(result) if as_json else "\n".join(lines))
