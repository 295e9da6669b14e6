"""Lays out an installation of the stand-in, as AMD's installer lays out the real tools of a release."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

MAIN = Path(__file__).with_name("main.py")
PLATFORMS = ("xilinx_u55c_gen3x16_xdma_3_202210_1", "xilinx_u280_gen3x16_xdma_1_202211_1")
# The programs of each product of a release, and where the products are from 2025.1 on.
CLASSIC = {"Vitis_HLS": ("vitis_hls",), "Vitis": ("v++", "emconfigutil"), "Vivado": ("vivado",)}
BRIDGE = {"Vitis_HLS": ("vitis_hls",), "Vitis": ("v++", "vitis-run", "emconfigutil"), "Vivado": ("vivado",)}
UNIFIED = {"Vitis": ("v++", "vitis-run", "emconfigutil"), "Vivado": ("vivado",)}


class Installation:
    """The folder of a stand-in's installation; `behave` says what goes wrong in it."""

    def __init__(self, root: Path, release: str, platforms: tuple[str, ...] = PLATFORMS) -> None:
        self.root, self.release, self.platforms = root, release, platforms
        self.products = CLASSIC if release < "2023.2" else BRIDGE if release < "2025.1" else UNIFIED
        for product, programs in self.products.items():
            for program in programs:
                self._program(self.folder(product), program)
        script = self.folder("Vitis") / "settings64.sh"
        paths = ":".join(str(self.folder(product) / "bin") for product in self.products)
        script.write_text(f'export XILINX_VITIS="{self.folder("Vitis")}"\nexport PATH="{paths}:$PATH"\n')
        xrt = root / "xrt"
        (xrt / "lib").mkdir(parents=True)
        (xrt / "version.json").write_text(json.dumps({"BUILD_VERSION": "2.16.204"}))
        self._program(xrt, "xclbinutil")
        for name in platforms:
            folder = root / "platforms" / name
            folder.mkdir(parents=True)
            (folder / f"{name}.xpfm").write_text("<sdx:platform/>\n")
        self.behave({})

    def folder(self, product: str) -> Path:
        new = self.release >= "2025.1"
        return self.root / self.release / product if new else self.root / product / self.release

    @property
    def environment(self) -> dict[str, str]:
        """What a lab's machine would have set."""
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.root), "PLATFORM_REPO_PATHS": str(self.root / "platforms"),
            "XILINXD_LICENSE_FILE": "2100@licences", "XILINX_XRT": str(self.root / "xrt"),
        }  # fmt: skip

    def behave(self, behaviour: Mapping[str, object]) -> None:
        document = {"behaviour": dict(behaviour), "platforms": self.platforms}
        (self.root / "installation.json").write_text(json.dumps(document))
        quiet = "child-killed-quietly" in behaviour.values()
        for loader in self.root.glob("**/loader"):
            text = loader.read_text().splitlines()
            loader.write_text("\n".join(text[:2] + (["exit 0"] if quiet else ["exit $?"])) + "\n")

    def calls(self) -> list[list[str]]:
        """The command lines that its programs were started with."""
        log = self.root / "calls.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def _program(self, folder: Path, name: str) -> None:
        """A launcher that starts a loader that starts the program, none of which makes way for the next."""
        binaries = folder / "bin"
        binaries.mkdir(parents=True, exist_ok=True)
        loader = binaries / "loader"
        loader.write_text(
            f'#!/bin/sh\n"{sys.executable}" -I -S "{MAIN}" "{self.root}" "{self.release}" "$@"\nexit $?\n'
        )
        launcher = binaries / name
        launcher.write_text(f'#!/bin/sh\n"$(dirname "$0")/loader" "{name}" "$@"\nexit $?\n')
        for file in (loader, launcher):
            file.chmod(0o755)
