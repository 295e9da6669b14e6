"""The hand-written core as a package on disk: what the host runtime needs, and nothing more."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from penstock.compiler.backend.rtl.shell import BoardDesign, UartLink, wrap_core
from penstock.compiler.package.bitstream import Bitstream, bitstream_files
from penstock.compiler.platforms import load_platform
from penstock.compiler.runtime.penstock_runtime.package import SCHEMA, manifest_digest
from tests.board.hand_core import hand_core

PLATFORM = "ulx3s-85f"


def wrapped(
    words: int = 8, *, stuck: bool = False, platform: str = PLATFORM, clock_mhz: float = 50.0, baud: int | None = None
) -> BoardDesign:
    board = load_platform(platform).board
    assert board is not None
    return wrap_core(hand_core(words, stuck=stuck), board, UartLink(baud), clock_mhz=clock_mhz)


def weights(words: int) -> np.ndarray:
    return np.random.default_rng(words).integers(-128, 128, (words, 2)).astype(np.int8)


def write_package(folder: Path, design: BoardDesign, words: int, made: Bitstream | None = None) -> Path:
    """Everything below `folder`, with a manifest that vouches for it."""
    shape = {"shape": [words, 2], "dtype": "int8", "layout": None}
    interface = {
        "inputs": [{"name": "x", "index": 0, **shape}],
        "parameters": [{"name": "w", "file": "parameters/w.bin", **shape}],
        "outputs": [{"name": "y", "index": 0, **shape, "dtype": "int16"}],
    }
    ports = {
        kind: [{"name": entry["name"], "shape": entry["shape"], "dtype": entry["dtype"]} for entry in interface[kind]]
        for kind in ("inputs", "outputs")
    }
    files = {
        "interface.json": json.dumps(interface).encode(),
        "parameters/w.bin": weights(words).tobytes(),
        "model/signature.json": json.dumps(ports).encode(),
        **bitstream_files(design, made),
    }
    entries = [{"path": p, "sha256": hashlib.sha256(d).hexdigest(), "size": len(d)} for p, d in files.items()]
    manifest = {"schema": SCHEMA, "name": "hand", "files": entries}
    files["manifest.json"] = json.dumps({**manifest, "digest": manifest_digest(manifest)}).encode()
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder
