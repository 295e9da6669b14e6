"""Reports of designs that nobody searched: as many layers as a test wants, with everything that the pages draw."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from penstock.profiling.kernels.analysis import analyse_kernel

RESOURCES = {"lut": 800_000, "ff": 1_100_000, "dsp": 6_700, "bram18": 2_800, "uram": 768}


def report_of(layers: int, *, simulated: bool = True, name: str = "layer") -> dict[str, Any]:
    """Blocks of ten layers each in a chain, every block with a way around its second half."""
    labels = [f"blocks.{index // 10}.{name}{index % 10}" for index in range(layers)]
    tasks = [label.replace(".", "_") for label in labels]
    all_labels, all_tasks = ["x", *labels, "output_0"], ["load_x", *tasks, "store_0"]
    pairs = [(index, index + 1) for index in range(layers + 1)]
    pairs += [(index, index + 5) for index in range(3, layers - 5, 10)]
    timing = [
        {"kernel": label, "nest": task, "ii": 1 + index % 3 // 2, "ii_reason": "two reads" if index % 3 == 2 else "",
         "depth": 12, "trips": 64, "latency_cycles": 70 + index, "initial_delay_cycles": 5, "evidence": "modelled"}
        for index, (label, task) in enumerate(zip(all_labels, all_tasks, strict=True))
    ]  # fmt: skip
    return {
        "design": {
            "digest": "d" * 64, "clock_mhz": 300.0, "converters": [],
            "kernels": [
                {"name": label, "operation": "reduce 64 → 32", "trips": [32, 64], "tile": [16, 64], "unroll": [16, 4],
                 "order": [0, 1], "weights": "rom"}
                for label in labels
            ],
            "written": [
                {"kernel": label, "file": "net.py", "line": 12 + index, "text": f"x = self.{name}{index}(x)  # <b>",
                 "layer": label, "operation": "aten.linear"}
                for index, label in enumerate(labels)
            ],
            "channels": [_channel(all_labels, all_tasks, *pair) for pair in pairs],
        },
        "timing": {
            "evidence": "simulated" if simulated else "modelled", "clock_mhz": 300.0, "latency_cycles": 100 + layers,
            "interval_cycles": 80, "kernels": timing, "note": "",
            "simulated": _simulated(all_tasks) if simulated else None,
        },
        "resources": {
            "evidence": "modelled", "note": "",
            **{key: _amount(limit) for key, limit in RESOURCES.items()},
            "kernels": [
                {"kernel": label, "evidence": "modelled", "lut": 100 * (index + 1), "ff": 50, "dsp": index, "bram18": 0,
                 "uram": 0}
                for index, label in enumerate([*all_labels, "channels"])
            ],
        },
        "placement": {
            "dies": [{"name": "slr0", "tasks": all_tasks[::2]}, {"name": "slr1", "tasks": all_tasks[1::2]}],
            "memories": [
                {"name": f"{all_tasks[1]}.acc", "die": "slr0", "words": 32, "word_bits": 32, "banks": 4, "copies": 1,
                 "kind": "lutram", "blocks": ""},
                *(
                    {"name": f"{all_tasks[writer]}__{all_tasks[reader]}", "die": "slr0", "words": 4, "word_bits": 128,
                     "banks": 1, "copies": 1, "kind": ("srl", "bram", "registers", "uram")[writer % 4],
                     "blocks": "1 BRAM18" if writer % 4 == 1 else ""}
                    for writer, reader in pairs
                ),
            ],
            "tensors": [
                _tensor("x", "input", "HBM[0]", 0, 4_096), _tensor("output", "output", "HBM[10]", 2, 64),
                *(_tensor(f"{label}.weight", "parameter", f"HBM[{1 + n % 2}]", 1 + n % 2, 65_536, (n % 2, 2))
                  for n, label in enumerate(labels[:6])),
            ],
            "banks": [{"name": f"HBM[{n}]", "memory": "hbm", "bytes": 1 << 28} for n in (0, 1, 2, 10)],
        },
    }  # fmt: skip


def _tensor(
    name: str, kind: str, bank: str, port: int, size: int, share: tuple[int, int] | None = None
) -> dict[str, Any]:
    return {
        "name": name, "kind": kind, "bank": bank, "port": f"gmem{port}", "argument": name.replace(".", "_"),
        "shape": [size // 4], "dtype": "float32", "share": share, "bytes": size, "word_bytes": 64,
    }  # fmt: skip


def _amount(limit: int) -> dict[str, Any]:
    return {"used": limit // 3, "available": 2 * limit, "limit": limit, "share": 1 / 6}


def _channel(labels: list[str], tasks: list[str], writer: int, reader: int) -> dict[str, Any]:
    last = len(labels) - 1
    return {
        "name": f"{tasks[writer]}__{tasks[reader]}", "source": "" if writer == 0 else labels[writer],
        "target": "" if reader == last else labels[reader], "kind": "fifo", "token": "128 bit", "width_bits": 128,
        "depth": 4, "tokens": 64, "high_water": 2, "evidence": "modelled", "held": 4 if writer % 2 else 1,
        "unsized_depth": 4, "saved_bits": 0, "memory": "srl",
    }  # fmt: skip


def _simulated(tasks: list[str]) -> dict[str, Any]:
    times = [
        {"task": task, "start_cycle": 0, "end_cycle": 80 + index, "first_token_cycle": index, "busy_cycles": 64,
         "waited_cycles": 16 + index}
        for index, task in enumerate(tasks)
    ]  # fmt: skip
    stall = {"task": tasks[1], "channel": f"{tasks[0]}__{tasks[1]}", "cause": "empty", "cycles": 16}
    path = [{"task": task, "start_cycle": 0, "end_cycle": 80, "channel": None} for task in tasks[:3]]
    return {
        "evidence": "simulated",
        "rules": "vitis",
        "frame_ends": [100],
        "tasks": times,
        "stalls": [stall],
        "critical_path": path,
    }


KERNEL = """#include <hls_stream.h>
static void first(int a[64], hls::stream<int> &out) {
    for (int i = 0; i < 64; i++) out.write(a[i] * 3);
}
static void second(hls::stream<int> &in, float b[64]) {
    float sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += in.read();
        b[i] = sum;
    }
}
void chain(int a[64], float b[64]) {
#pragma HLS dataflow
    hls::stream<int> between;
#pragma HLS stream variable=between depth=32
    first(a, between);
    second(between, b);
}
"""


def kernel_record() -> dict[str, Any]:
    """What the run of a small kernel of two tasks leaves, as if half of its cycles were saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.cpp"
        path.write_text(KERNEL)
        found = json.loads(json.dumps(analyse_kernel(path, "chain").to_json()))
    explored = {
        "way": "pragmas", "changes": ["chain.cpp:15:1: depth of between 32 -> 44"], "trials": 2, "chosen": 1,
        "values": {"how": "only pragmas were changed", "compared": 0, "different": 0},
    }  # fmt: skip
    return {
        "file": "chain.cpp", "before": found, "after": {**found, "latency": found["latency"] // 2},
        "exploration": explored, "sent": KERNEL, "source": KERNEL,
    }  # fmt: skip
