"""A package on disk: opening a folder or an archive, checking every file against the manifest, reading it."""

from __future__ import annotations

import hashlib
import json
import stat
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from .errors import DAMAGED, ENCRYPTED, PackageError, says_damaged
from .host import GRAPH, WHOLE, HostGraph
from .layout import Packed, in_one_piece
from .lengths import Lengths, size_of
from .ports import Array, Port
from .state import State, States
from .text import Characters, Tokenizer, TokenizerFile

MANIFEST = "manifest.json"
STATES = "states/states.json"
CHARACTERS = "text/characters.npy"
TOKENIZER = "text/tokenizer.json"
SCHEMA = 1


@dataclass(frozen=True)
class Samples:
    """Example inputs, PyTorch's answers, and the exact values that the accelerator must give.

    `expected` comes from the compiler's interpreter, in the accelerator's own types, before dequantisation.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    expected: tuple[Array, ...]


@dataclass(frozen=True)
class Probes:
    """Inputs that make every weight matter, and the exact answers: one array a port, a row a call.

    Both are in the accelerator's own types; the answers are those of the package's C++.
    """

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    gentle: int
    """The first so many are numbers as the model meets them; the others are for the same arithmetic alone."""

    def frames(self) -> list[list[Array]]:
        return [[port[row] for port in self.inputs] for row in range(len(self.inputs[0]))]


@dataclass(frozen=True)
class Evaluation:
    """A held-out set: one row an example, labels, PyTorch's answers.

    `expected` are the exact values that the accelerator must give, for as many examples as were interpreted.
    """

    name: str
    inputs: Array
    labels: Array
    outputs: Array
    expected: Array | None


@dataclass(frozen=True)
class SharedLayers:
    """Layers of one form: the accelerator computes one after the other, each with weights of its own.

    `weights` has a row a layer: by its place among the accelerator's inputs, what it reads there.
    """

    graph: HostGraph
    names: list[str]
    weights: list[dict[int, Packed]]

    def inputs(self, number: int, passed: Sequence[Any]) -> list[Any]:
        """All inputs of a call: the layer's weights in their places among what the model passes."""
        held, rest = self.weights[number], iter(passed)
        return [held[index] if index in held else next(rest) for index in range(len(held) + len(passed))]

    @property
    def held(self) -> set[int]:
        return set(self.weights[0])


@dataclass(frozen=True)
class Package:
    """An opened package. `close` removes the temporary folder of one that was opened from an archive."""

    root: Path
    manifest: Mapping[str, Any]
    _unpacked: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def digest(self) -> str:
        return str(self.manifest["digest"])

    @property
    def from_archive(self) -> bool:
        return self._unpacked is not None

    def close(self) -> None:
        if self._unpacked is not None:
            self._unpacked.cleanup()

    def __enter__(self) -> Package:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def paths(self) -> list[str]:
        """Every file that the manifest vouches for."""
        return [entry["path"] for entry in self.manifest["files"]]

    def json(self, path: str) -> Any:
        return json.loads((self.root / path).read_text(encoding="utf-8"))

    def ports(self) -> tuple[list[Port], list[Port]]:
        document = self.json("model/signature.json")
        inputs = [Port.from_json(p) for p in document["inputs"]]
        return inputs, [Port.from_json(p) for p in document["outputs"]]

    def lengths(self) -> Lengths | None:
        """The sizes that each call says; None for an accelerator of one size."""
        if (said := self.json("interface.json").get("lengths")) is None:
            return None
        document = self.json("model/signature.json")
        host, whole = (self.json(path) if path in self.paths() else None for path in (GRAPH, WHOLE))
        held = set(whole["held"]) if whole else set[str]()
        hidden = {one["input"] for one in self.json(STATES)} if STATES in self.paths() and not whole else set[int]()
        outer = whole or host
        model = [
            [size_of(number) for number in port["shape"]] if outer else port["sizes"]
            for i, port in enumerate((outer or document)["inputs"]) if i not in hidden
        ]  # fmt: skip
        places = [size for graph in (host, whole) if graph for size in graph.get("positions", {}).values()]
        return Lengths(
            said["of"],
            [port["sizes"] for port in document["inputs"] if port["name"] not in held],
            [port["sizes"] for port in document["outputs"]],
            model,
            [size for one in places if (size := size_of(one)) is not None],
        )

    def length_samples(self) -> list[Samples]:
        """Example inputs at other lengths than the largest."""
        folders = sorted({path.rsplit("/", 1)[0] for path in self.paths() if path.startswith("model/lengths/")})
        return [
            Samples(*(self._arrays(f"{folder}/{kind}_") for kind in ("input", "output", "expected")))
            for folder in folders
        ]

    def samples(self) -> Samples | None:
        groups = [self._arrays(f"model/samples/{kind}_") for kind in ("input", "output", "expected")]
        return Samples(*groups) if groups[0] else None

    def probes(self) -> Probes | None:
        groups = [self._arrays(f"model/probes/{kind}_") for kind in ("input", "expected")]
        return Probes(*groups, gentle=int(self.json("model/probes/probes.json")["gentle"])) if groups[0] else None

    def evaluation(self) -> Evaluation | None:
        if "model/evaluation/evaluation.json" not in self.paths():
            return None
        name = self.json("model/evaluation/evaluation.json")["name"]
        inputs, labels, outputs = (
            self._array(f"model/evaluation/{kind}.npy") for kind in ("inputs", "labels", "outputs")
        )
        has_expected = "model/evaluation/expected.npy" in self.paths()
        expected = self._array("model/evaluation/expected.npy") if has_expected else None
        return Evaluation(name, inputs, labels, outputs, expected)

    def tokenizer(self) -> Tokenizer | None:
        """How the model's tokens and text become each other, where it brought that."""
        if CHARACTERS in self.paths():
            return Characters([int(point) for point in self._array(CHARACTERS)])
        if TOKENIZER in self.paths():
            return TokenizerFile((self.root / TOKENIZER).read_text(encoding="utf-8"))
        return None

    def host(self) -> HostGraph | None:
        """What of the model runs on this machine; None if the accelerator does all of it."""
        if GRAPH not in self.paths():
            return None
        document = self.json(GRAPH)
        return HostGraph(document, {name: self._array(path) for name, path in document["values"].items()})

    def layers(self) -> SharedLayers | None:
        """The layers that share the accelerator, and what of the model stands around them; None without any."""
        if WHOLE not in self.paths():
            return None
        document, entries = self.json(WHOLE), self.json("interface.json")["inputs"]
        graph = HostGraph(document, {name: self._array(path) for name, path in document["values"].items()})
        names = {p.name: index for index, p in enumerate(self.ports()[0])}
        held = {names[name] for name in document["held"]}
        read = {
            entry["argument"]: in_one_piece([
                np.fromfile(self.root / layer["weights"][entry["argument"]], entry["dtype"])
                for layer in document["layers"]
            ])
            for entry in entries if int(entry["index"]) in held
        }  # fmt: skip
        weights = [
            {
                index: Packed({e["argument"]: read[e["argument"]][number] for e in entries if int(e["index"]) == index})
                for index in held
            }
            for number in range(len(document["layers"]))
        ]
        return SharedLayers(graph, [layer["name"] for layer in document["layers"]], weights)

    def states(self) -> States | None:
        """What the model keeps between calls, as before the first one."""
        if STATES not in self.paths():
            return None
        found = [
            State(
                one["name"], one["input"], one["output"], one["port"], one["result"], one["dim"], one["positions"],
                [self._array(path) for path in one["initial"]],
            )
            for one in self.json(STATES)
        ]  # fmt: skip
        return States(found, self.ports(), self.json("interface.json"))

    def host_samples(self) -> Samples | None:
        """Example inputs of the whole model and PyTorch's answers, where parts of it run on the host."""
        inputs, outputs = self._arrays("host/samples/input_"), self._arrays("host/samples/output_")
        return Samples(inputs, outputs, ()) if inputs else None

    def problems(self) -> list[str]:
        """Every file that is missing or differs from the manifest, one line each; empty if all is well."""
        found: list[str] = []
        if self.digest != manifest_digest(self.manifest):
            found.append("manifest.json: changed since the package was built")
        for entry in self.manifest["files"]:
            path = self.root / entry["path"]
            if not path.is_file():
                found.append(f"{entry['path']}: missing")
            elif path.stat().st_size != entry["size"] or file_digest(path) != entry["sha256"]:
                found.append(f"{entry['path']}: changed since the package was built")
        return found

    def _array(self, path: str) -> Array:
        return np.load(self.root / path, allow_pickle=False)

    def _arrays(self, prefix: str) -> tuple[Array, ...]:
        names = [p for p in self.paths() if p.startswith(prefix)]
        return tuple(self._array(p) for p in sorted(names, key=lambda p: int(p[len(prefix) : -len(".npy")])))


def open_package(path: str | Path) -> Package:
    """Open an unpacked package or the archive itself, without checking the files' contents."""
    location = Path(path)
    if location.is_dir():
        return Package(location, _read_manifest(location))
    if not location.exists():
        raise PackageError(f"{location} does not exist", "pass the folder of a package or its .penstock.zip")
    if not zipfile.is_zipfile(location):
        raise PackageError(f"{location} is neither a folder nor an archive", "pass a .penstock.zip")
    unpacked = tempfile.TemporaryDirectory(prefix="penstock-package-")
    try:
        unpack(location, Path(unpacked.name))
        return Package(Path(unpacked.name), _read_manifest(Path(unpacked.name)), unpacked)
    except BaseException:
        unpacked.cleanup()
        raise


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive whose author is not trusted: plain files below `folder` only, each name once."""
    try:
        with zipfile.ZipFile(archive) as source:
            names = [info.filename for info in source.infolist()]
            if len(set(names)) != len(names):
                raise PackageError(f"{archive.name} holds a file twice", "fetch the package again")
            for info in source.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if not is_safe_path(info.filename) or kind not in (0, stat.S_IFREG):
                    raise PackageError(
                        f"{archive.name} holds {info.filename!r}, which would leave the folder",
                        "this is no package that Penstock made; do not use it",
                    )
            if any(info.flag_bits & ENCRYPTED for info in source.infolist()):
                raise PackageError(f"{archive.name} is encrypted, or damaged", "fetch the package again")
            source.extractall(folder)
    except DAMAGED as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if says_damaged(error):
            raise _damaged(archive, error) from error
        what = f"{archive.name} cannot be unpacked ({error})"
        raise PackageError(what, "make room, or pass the unpacked folder") from error


def _damaged(archive: Path, error: Exception) -> PackageError:
    return PackageError(f"{archive.name} is damaged ({error})", "fetch the package again")


def is_safe_path(name: str) -> bool:
    """Whether a name in an archive or manifest stays below the package's folder on every system."""
    path = PurePosixPath(name)
    plain = bool(name) and "\\" not in name and ":" not in name and "\0" not in name
    return plain and not path.is_absolute() and ".." not in path.parts and not name.endswith("/")


def file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """The package's identity: everything in the manifest, and so every file's hash, except this digest."""
    document = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _read_manifest(folder: Path) -> Mapping[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise PackageError(f"{folder} holds no {MANIFEST}", "pass the folder into which the package was unpacked")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        schema = manifest["schema"]
        unsafe = [e["path"] for e in manifest["files"] if not is_safe_path(e["path"])]
        complete = all(key in manifest for key in ("name", "digest"))
    except (ValueError, KeyError, TypeError) as error:
        raise PackageError(f"{path} cannot be read ({error!r})", "fetch the package again") from error
    if schema != SCHEMA:
        raise PackageError(f"{path} has schema {schema}, this runtime reads {SCHEMA}", "use the package's own run.py")
    if unsafe or not complete:
        raise PackageError(f"{path} is not a manifest that Penstock wrote", "fetch the package again")
    return manifest
