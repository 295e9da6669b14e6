"""Many emitted designs as one C++ program: the headers are parsed once, which is most of the time of a small build."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock.profiling.csim import FLAGS, SANITIZERS, Csim, find_compiler
from penstock.profiling.tool_runner import ToolRunner

SOURCES = ("hls/penstock_top.cpp", "csim/penstock_csim.cpp", "csim/csim_main.cpp")
SHARED = ("hls/penstock_ops.h", "csim/include/*.h", "csim/words.h")
"""What is the same for every design, and so stands outside the designs' namespaces."""
OWN_NAMES = ("penstock_top", "penstock_csim")

MAIN = """
int main(int argc, char **argv) {{
    switch (std::atoi(std::strrchr(argv[0], '.') + 1)) {{
{cases}
    }}
    return 3;
}}
"""


def build_batch(folders: Sequence[Path], work: Path, *, sanitize: bool = False) -> list[Csim]:
    """Each folder's simulation, as a link to one program that looks at the name it was called by."""
    work.mkdir(exist_ok=True)
    source, program = work / "batch.cpp", work / "batch"
    source.write_text(_text([folder.resolve() for folder in folders]))
    flags = [f for f in FLAGS if not f.startswith("-O")] + ["-O0", *(SANITIZERS if sanitize else ())]
    include = [f"-I{folders[0].resolve() / part}" for part in ("csim/include", "hls")]
    build = [find_compiler(), *flags, *include, str(source), "-o", str(program)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    batch: list[Csim] = []
    for number, folder in enumerate(folders):
        link = work / f"csim.{number}"
        link.symlink_to(program)
        interface = json.loads((folder / "interface.json").read_text())
        batch.append(Csim(folder.resolve(), link, ToolRunner(), interface))
    return batch


def _text(folders: Sequence[Path]) -> str:
    first = folders[0]
    shared = [path for pattern in SHARED for path in sorted(first.glob(pattern))]
    everything = "\n".join(path.read_text() for folder in folders for path in [*_own_files(folder), *shared])
    system = sorted(set(re.findall(r"^#include <[^>]+>", everything, re.MULTILINE)))
    lines = [*system, "#include <cstdlib>", "#include <cstring>", *(f'#include "{path}"' for path in shared)]
    for number, folder in enumerate(folders):
        renamed = [(name, f"{name}_of_design_{number}") for name in OWN_NAMES] + [("main", "csim_main")]
        lines += [f"#define {old} {new}" for old, new in renamed]
        lines += [f"namespace design_{number} {{", *(f'#include "{folder / name}"' for name in SOURCES), "}"]
        lines += [f"#undef {old}" for old, _ in renamed]
        lines += [f"#undef {guard}" for path in _own_files(folder) for guard in _guards(path)]
    cases = "\n".join(f"    case {n}: return design_{n}::csim_main(argc, argv);" for n in range(len(folders)))
    return "\n".join(lines) + MAIN.format(cases=cases)


def _own_files(folder: Path) -> list[Path]:
    shared = {path for pattern in SHARED for path in folder.glob(pattern)}
    return sorted(p for part in ("hls", "csim") for p in (folder / part).glob("*.[ch]*") if p not in shared)


def _guards(path: Path) -> list[str]:
    """The include guard of a design's own header, which the next design's must be able to define again."""
    found = re.match(r"(?:\s*//[^\n]*\n)*\s*#ifndef (\w+)\n#define \1\b", path.read_text())
    return [found[1]] if found else []
