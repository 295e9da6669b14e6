"""A model between passes: its IR, its weights by name, and what the host must know to call it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, BytesAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.host_parts import HostParts
from penstock.compiler.layers import Layers
from penstock.compiler.mesh_record import FILE as MESH_FILE
from penstock.compiler.mesh_record import MeshRecord
from penstock.compiler.model_lengths import ModelLengths
from penstock.compiler.places import FILE as PLACES_FILE
from penstock.compiler.places import WrittenPlace, load_places, save_places
from penstock.compiler.state import KeptState, load_states, save_states
from penstock.compiler.text import TextPart

_LENGTHS = "lengths"


@dataclass(frozen=True)
class Quantisation:
    """Symmetric quantisation of one port: real value = scale * integer. A scale a column if it is a tuple."""

    scale: float | tuple[float, ...]
    dtype: str

    def quantise(self, values: Array) -> Array:
        limits = np.iinfo(np.dtype(self.dtype))
        with np.errstate(over="ignore"):  # infinity is clipped as well
            scaled = np.rint(np.asarray(values, np.float32) / np.asarray(self.scale, np.float32))
        return np.clip(scaled, limits.min, limits.max).astype(self.dtype)

    def dequantise(self, values: Array) -> Array:
        return (values.astype(np.float32) * np.asarray(self.scale, np.float32)).astype(np.float32)


@dataclass(frozen=True)
class Port:
    """One input or output of the accelerator. `dtype` is what crosses the link; `quant` how the host gets there."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: Quantisation | None = None
    largest: float = 0.0
    """What the float model answers at most on typical inputs, where quantisation measured it on such."""


@dataclass(frozen=True)
class Signature:
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class Samples:
    """Example inputs of the model and what the reference answered."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    reference: str = "PyTorch"


@dataclass(frozen=True)
class EvaluationSet:
    """A held-out set for classification: model inputs one row an example, labels, PyTorch's outputs."""

    name: str
    inputs: Array
    labels: Array
    outputs: Array


@dataclass(frozen=True, repr=False)
class Program:
    """A module with `func.func @main`, whose arguments are the inputs and the lifted weights."""

    name: str
    module: ModuleOp
    params: dict[str, Array]
    signature: Signature
    samples: Samples | None = None
    evaluation: EvaluationSet | None = None
    calibration: tuple[Array, ...] = ()
    """Typical inputs of so many calls, of each input an array with a call a row: activation ranges are measured on
    them. They are the whole model's where layers share the accelerator, or where it keeps state, whose own inputs are
    not among them."""
    host: HostParts | None = None
    """What of the model runs on the host, around the accelerator. Module, signature and samples are then those of the
    accelerator; the evaluation's inputs and outputs are the whole model's."""
    has_weights: bool = True
    """Not after an import with shapes only: a parameter is then one zero, seen everywhere, in no memory."""
    notes: tuple[str, ...] = ()
    """Sentences about what the import changed in the model."""
    layers: Layers | None = None
    """The layers that this program is one of, in a model that repeats it: the accelerator computes them in turn."""
    states: tuple[KeptState, ...] = ()
    """What the model keeps between calls. Signature and samples have it too, as inputs and results like others."""
    initial: Mapping[str, Array] = field(default_factory=dict[str, Array])
    """What each of the states holds before the first call."""
    text: TextPart | None = None
    """How a language model's tokens become text, and text to hold it against."""
    mesh: MeshRecord | None = None
    """Of a tile program: the plan that it was made of, for pages."""
    places: Mapping[str, tuple[WrittenPlace, ...]] = field(default_factory=dict[str, tuple[WrittenPlace, ...]])
    """Where the user wrote each layer; under no name, of one that has no layers."""
    lengths: ModelLengths | None = None
    """The sizes that each call says. All else is as large as at the largest of them."""

    def __repr__(self) -> str:
        """The name alone: a module's own repr walks its whole graph, over and over."""
        return f"Program({self.name!r})"

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """The same in notebooks and in the examples that property tests print."""
        printer.text(repr(self))

    def held_inputs(self, turn: int) -> Mapping[str, Array]:
        """Inputs that the host runtime keeps and the model does not pass: one layer's weights, one after the other."""
        if self.layers is None:
            return {}
        weights = self.layers.weights[turn % len(self.layers.weights)]
        return {name: value for name, value in weights.items() if name not in self.params}

    def all_inputs(self, turn: int, passed: Sequence[Array]) -> list[Array]:
        """The inputs of a call in the order of the signature: those that are held, and what the model passes."""
        held, rest = self.held_inputs(turn), iter(passed)
        return [held[port.name] if port.name in held else next(rest) for port in self.signature.inputs]

    def with_states(self, turn: int, passed: Sequence[Array]) -> list[Array]:
        """A first call's inputs of the model, or of a layer of it: its states, and what is passed."""
        initial = self.layers.initial[turn] if self.layers else self.initial
        held, rest = {state.input: initial[state.name] for state in self.states}, iter(passed)
        return [held[i] if i in held else next(rest) for i in range(len(held) + len(passed))]

    def without_states(self, answers: Sequence[Array]) -> list[Array]:
        """The results that the user or the model sees."""
        hidden = {state.output for state in self.states}
        return [answer for i, answer in enumerate(answers) if i not in hidden]

    def with_module(self, module: ModuleOp, **changes: Any) -> Program:
        return replace(self, module=module, **changes)

    def quantise_inputs(self, inputs: Sequence[Array]) -> list[Array]:
        """What the host does before the accelerator: check shapes, convert to the ports' dtypes."""
        ports = self.signature.inputs
        if len(inputs) != len(ports):
            raise PenstockError(
                code="input-count", what=f"{len(inputs)} inputs given", where=self.name,
                limit=f"the model takes {len(ports)}", hint="pass " + ", ".join(p.name for p in ports),
            )  # fmt: skip
        return [_convert(value, port) for value, port in zip(inputs, ports, strict=True)]

    def dequantise_outputs(self, outputs: Sequence[Array]) -> list[Array]:
        """What the host does after the accelerator: integers back to real numbers."""
        ports = self.signature.outputs
        return [p.quant.dequantise(v) if p.quant else v for v, p in zip(outputs, ports, strict=True)]

    def graph_text(self) -> str:
        """The module as `read_graph_text` reads it."""
        text = io.StringIO()  # xDSL cannot read back all that it prints in the form for people
        Printer(text, print_generic_format=True).print_op(self.module)
        return text.getvalue()

    def save(self, folder: Path) -> None:
        """Write graph.mlir, signature.json, params.npz and, where present, samples.npz and evaluation.npz."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.mlir").write_text(self.graph_text() + "\n")
        reference = {"reference": self.samples.reference} if self.samples else {}
        notes = {"notes": list(self.notes)} if self.notes else {}
        document = {
            "name": self.name, **reference, **notes, "params": list(self.params), **_signature_json(self.signature),
        }  # fmt: skip
        if not self.has_weights:
            document["has_weights"] = False
        (folder / "signature.json").write_text(json.dumps(document, indent=1) + "\n")
        _save_arrays(folder / "params.npz", self.params)
        if self.samples:
            _save_arrays(folder / "samples.npz", {
                **{f"input_{i}": a for i, a in enumerate(self.samples.inputs)},
                **{f"output_{i}": a for i, a in enumerate(self.samples.outputs)},
            })  # fmt: skip
        if self.evaluation:
            e = self.evaluation
            arrays = {"name": np.array(e.name), "inputs": e.inputs, "labels": e.labels, "outputs": e.outputs}
            _save_arrays(folder / "evaluation.npz", arrays)

        if self.calibration:
            rows = {f"inputs_{i}": array for i, array in enumerate(self.calibration)}
            _save_arrays(folder / "calibration.npz", rows)
        if self.host is not None:
            self.host.save(folder / "host")
        if self.layers is not None:
            self.layers.save(folder / "layers")
        if self.states:
            save_states(self.states, self.initial, folder / "states")
        if self.text is not None:
            self.text.save(folder / "text")
        if self.mesh is not None:
            (folder / MESH_FILE).write_text(json.dumps(self.mesh) + "\n")
        if self.places:
            save_places(self.places, folder)
        if self.lengths is not None:
            self.lengths.save(folder / _LENGTHS)

    @staticmethod
    def load(folder: Path, context: Context) -> Program:
        """Read what `save` wrote. Nothing in the folder is executed: text, JSON and plain arrays only."""
        document = json.loads((folder / "signature.json").read_text())
        module = read_graph_text((folder / "graph.mlir").read_text(), context)
        samples = evaluation = None
        if (folder / "samples.npz").exists():
            arrays = _load_arrays(folder / "samples.npz")
            samples = Samples(
                tuple(arrays[k] for k in sorted(arrays, key=_index) if k.startswith("input_")),
                tuple(arrays[k] for k in sorted(arrays, key=_index) if k.startswith("output_")),
                document.get("reference", "PyTorch"),
            )
        if (folder / "evaluation.npz").exists():
            a = _load_arrays(folder / "evaluation.npz")
            evaluation = EvaluationSet(str(a["name"]), a["inputs"], a["labels"], a["outputs"])
        calibration: tuple[Array, ...] = ()
        if (folder / "calibration.npz").exists():
            arrays = _load_arrays(folder / "calibration.npz")
            calibration = tuple(arrays[k] for k in sorted(arrays, key=_index_or_first))
        states, initial = load_states(folder / "states") if (folder / "states").is_dir() else ((), dict[str, Array]())
        arrays = _load_arrays(folder / "params.npz")
        params = {name: arrays[name] for name in document["params"]}
        ports = [tuple(_port(p) for p in document[side]) for side in ("inputs", "outputs")]
        host = HostParts.load(folder / "host") if (folder / "host").is_dir() else None
        layers = Layers.load(folder / "layers") if (folder / "layers").is_dir() else None
        text = TextPart.load(folder / "text") if (folder / "text").is_dir() else None
        mesh = json.loads((folder / MESH_FILE).read_text()) if (folder / MESH_FILE).exists() else None
        places = load_places(folder) if (folder / PLACES_FILE).exists() else {}
        lengths = ModelLengths.load(folder / _LENGTHS) if (folder / _LENGTHS).is_dir() else None
        return Program(
            document["name"], module, params, Signature(*ports), samples, evaluation, calibration, host,
            document.get("has_weights", True),
            tuple(document.get("notes", ())), layers, states, initial, text, mesh, places,
            lengths,
        )  # fmt: skip


def read_graph_text(text: str, context: Context) -> ModuleOp:
    """A module from text, verified."""
    module = Parser(context, text).parse_module(allow_implicit_module=False)  # else aliases make a short text endless
    _read_names(module)
    module.verify()
    return module


def _read_names(module: ModuleOp) -> None:
    """Words in other scripts are printed with escapes, which xDSL reads back as bytes: as text again, in place."""
    for op in module.walk():
        for given in (op.attributes, op.properties):
            for key, value in list(given.items()):
                given[key] = _as_text(value)


def _as_text(value: Attribute) -> Attribute:
    if isinstance(value, BytesAttr):
        return StringAttr(value.data.decode())
    if isa(value, ArrayAttr[DictionaryAttr]):
        return ArrayAttr(DictionaryAttr({k: _as_text(v) for k, v in one.data.items()}) for one in value)
    return value


def _convert(value: Array, port: Port) -> Array:
    array = np.asarray(value)
    if tuple(array.shape) != port.shape:
        raise PenstockError(
            code="input-shape", what=f"input has shape {tuple(array.shape)}", where=port.name,
            limit=f"the accelerator was built for {port.shape}",
            hint="pad or split the input, or compile with example inputs of that shape",
        )  # fmt: skip
    return port.quant.quantise(array) if port.quant else array.astype(port.dtype)


def _index(key: str) -> int:
    return int(key.rsplit("_", 1)[1])


def _index_or_first(key: str) -> int:
    """Before there could be several, the one array had no number."""
    return _index(key) if "_" in key else 0


def _save_arrays(path: Path, arrays: dict[str, Array]) -> None:
    # numpy's stub lets only its own keyword follow the file, so the names go through a plain mapping
    named: dict[str, Any] = dict(arrays)
    np.savez(path, **named)


def _load_arrays(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _signature_json(signature: Signature) -> dict[str, Any]:
    def port(p: Port) -> dict[str, Any]:
        quant = {"scale": p.quant.scale, "dtype": p.quant.dtype} if p.quant else None
        measured = {"largest": p.largest} if p.largest else {}
        return {"name": p.name, "shape": list(p.shape), "dtype": p.dtype, "quant": quant, **measured}

    return {"inputs": [port(p) for p in signature.inputs], "outputs": [port(p) for p in signature.outputs]}


def _port(document: dict[str, Any]) -> Port:
    quant: dict[str, Any] | None = document["quant"]
    quantisation = _quantisation(quant) if quant else None
    largest = document.get("largest", 0.0)  # a program of an earlier release has none
    return Port(document["name"], tuple(document["shape"]), document["dtype"], quantisation, largest)


def _quantisation(document: dict[str, Any]) -> Quantisation:
    scale: float | list[float] = document["scale"]
    return Quantisation(tuple(scale) if isinstance(scale, list) else scale, document["dtype"])
