"""What a fenced command sees and may use: Python, its packages, the compiler's code, the model; nothing else.

All of it is read-only and most of it lies at names of its own, so that nothing inside tells where it lies outside.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import IMPORT_ROOT
from penstock.services.steps.fence.launch import Spec

PRODUCT = "/product"
MODEL = "/model"
OUT = "/out"
_SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/nix/store")
_TOOLCHAIN = ("/usr/bin", "/bin", "/usr/include", "/usr/libexec", "/usr/local/include")
"""What a C++ compiler is made of beside its libraries."""
COMPILER, PROFILING = "compiler", "profiling"
_PACKAGES = ("site-packages", "dist-packages")
GB = 1 << 30


@dataclass(frozen=True)
class FenceLimits:
    """What one command may use up. CPU time and memory are of all its processes together, where that can be counted."""

    cpu_seconds: int = 120
    memory_bytes: int = 4 * GB
    out_bytes: int = 2 * GB
    tmp_bytes: int = GB // 2
    processes: int = 32
    open_files: int = 512

    @property
    def seconds(self) -> float:
        """How long it may take in all: a busy machine makes it late, a sleeping program must end."""
        return 4.0 * self.cpu_seconds


def fenced(
    arguments: Sequence[str],
    *,
    stage: Path,
    out: Path,
    outputs: Sequence[str],
    model: Path | None = None,
    hidden: Sequence[Path] = (),
    limits: FenceLimits,
    parts: Sequence[str] = (COMPILER,),
    compiler: str = "",
) -> tuple[str, ...]:
    """The command line that runs Python with these arguments behind the fence.

    `parts` are the folders of the product that it sees; with a `compiler`, it may call that and what belongs to it.

    `stage` is an empty folder to build the root on, `out` where the outputs go; `model` is seen as /model. `hidden`
    folders are empty inside, should they lie below one that is shown.
    """
    sites = _sites()
    shown = [*_python(), *_product(parts), *((str(path), seen) for path, seen in sites.items())]
    links: list[tuple[str, str]] = []
    for path in (*_SYSTEM, *(_TOOLCHAIN if compiler else ())):
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.exists(path):
            shown.append((path, path))
    if model is not None:
        shown.append((str(model), MODEL))
    environment = _environment([PRODUCT, *sites.values()])
    if compiler:
        environment["PATH"] = os.pathsep.join(dict.fromkeys((os.path.dirname(compiler), "/usr/bin", "/bin")))
        shown += [(place, place) for place in dict.fromkeys((compiler, os.path.realpath(compiler)))]
    spec = Spec(
        argv=(os.path.realpath(sys.executable), "-S", "-s", "-P", "-B", *arguments),
        env=environment,
        stage=str(stage),
        shown=tuple(dict.fromkeys(shown)),
        links=tuple(links),
        hidden=_inside(hidden, shown),
        out=str(out),
        outputs=tuple(outputs),
        out_bytes=limits.out_bytes,
        tmp_bytes=limits.tmp_bytes,
        cpu_seconds=limits.cpu_seconds,
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
        open_files=limits.open_files,
    )
    return (sys.executable, "-P", "-m", "penstock.services.steps.fence.launch", spec.text())


def _environment(path: Sequence[str]) -> dict[str, str]:
    single = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {
        "PATH": "/nonexistent",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "USER": "penstock",
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        "MALLOC_ARENA_MAX": "2",
        **dict.fromkeys(single, "1"),
    }


def _python() -> list[tuple[str, str]]:
    """The interpreter and its library; where the system's own is used, that is below /usr."""
    base, program = Path(sys.base_prefix), os.path.realpath(sys.executable)
    library = str(base / "lib")
    return [(program, program)] + ([] if library in _SYSTEM else [(library, library)])


def _sites() -> dict[Path, str]:
    """The folders of packages that this process imports from, and where they are seen."""
    found = [Path(path).resolve() for path in sys.path if Path(path).name in _PACKAGES and os.path.isdir(path)]
    return {path: f"/site/{number}" for number, path in enumerate(dict.fromkeys(found))}


def _product(parts: Sequence[str]) -> list[tuple[str, str]]:
    """The product's own code, where it does not lie among the packages."""
    package = IMPORT_ROOT / "penstock"
    names = ("__init__.py", *parts)
    return [(str((package / name).resolve()), f"{PRODUCT}/penstock/{name}") for name in names]


def _inside(hidden: Sequence[Path], shown: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Where hidden folders would be seen."""
    pairs = [(folder.resolve(), Path(source).resolve(), seen) for folder in hidden for source, seen in shown]
    return tuple(
        f"{seen}/{folder.relative_to(source)}"
        for folder, source, seen in pairs
        if folder != source and folder.is_relative_to(source)
    )
