"""What a model has of the sizes that each call says, as data, with PyTorch's answers at some of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.lengths import Length, SizesByLength, shape_at, sizes_json, sizes_of


@dataclass(frozen=True)
class LengthSample:
    """Example inputs at some lengths, and what PyTorch answered."""

    lengths: Mapping[str, int]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    given: tuple[Array, ...] = ()
    answered: tuple[Array, ...] = ()
    """The same of the whole model, where more of it than the accelerator computes."""

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (*self.inputs, *self.outputs, *self.given, *self.answered)


@dataclass(frozen=True)
class ModelLengths:
    """What a model's tensors have of the lengths that a call says.

    `inputs` and `outputs` are those of the signature, `params` by the names that they have in canonical linalg.
    """

    lengths: tuple[Length, ...]
    inputs: tuple[SizesByLength, ...]
    outputs: tuple[SizesByLength, ...]
    params: Mapping[str, SizesByLength] = field(default_factory=dict[str, SizesByLength])
    samples: tuple[LengthSample, ...] = ()

    @property
    def most(self) -> dict[str, int]:
        return {length.name: length.high for length in self.lengths}

    def with_inputs(self, fixed: Mapping[int, Array]) -> ModelLengths:
        """With more inputs, by their places among all then, of one size each."""

        def joined(old: Sequence[Any], new: Mapping[int, Any]) -> tuple[Any, ...]:
            rest = iter(old)
            return tuple(new[place] if place in new else next(rest) for place in range(len(old) + len(new)))

        sizes = {place: (None,) * array.ndim for place, array in fixed.items()}
        samples = tuple(replace(one, inputs=joined(one.inputs, fixed)) for one in self.samples)
        return replace(self, inputs=joined(self.inputs, sizes), samples=samples)

    def with_output_again(self, number: int) -> ModelLengths:
        """With one output once more, behind all others."""
        samples = tuple(replace(one, outputs=(*one.outputs, one.outputs[number])) for one in self.samples)
        return replace(self, outputs=(*self.outputs, self.outputs[number]), samples=samples)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            "lengths": [asdict(length) for length in self.lengths],
            "inputs": [sizes_json(one) for one in self.inputs], "outputs": [sizes_json(one) for one in self.outputs],
            "params": {name: sizes_json(one) for name, one in self.params.items()},
            "samples": [
                {"lengths": dict(s.lengths), "inputs": len(s.inputs), "outputs": len(s.outputs), "given": len(s.given)}
                for s in self.samples
            ],
        }  # fmt: skip
        (folder / "lengths.json").write_text(json.dumps(document, indent=1) + "\n")
        arrays: dict[str, Any] = {
            f"{number}_{place}": array
            for number, sample in enumerate(self.samples)
            for place, array in enumerate(sample.arrays)
        }
        np.savez(folder / "arrays.npz", **arrays)

    def misfit(self, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> str:
        """What it says that ports of these shapes contradict; nothing where all agrees."""
        names = [one.name for one in self.lengths]
        if not names or len(set(names)) < len(names) or any(Length.parse(str(one)) != one for one in self.lengths):
            return "its lengths are no ranges"
        for shapes, sides in ((inputs, self.inputs), (outputs, self.outputs)):
            if [len(shape) for shape in shapes] != [len(sizes) for sizes in sides]:
                return "its lengths are of other ports"
            for shape, sizes in zip(shapes, sides, strict=True):
                if any(name not in names for size in sizes if size for name, _ in size.factors):
                    return "a size follows from a length that it does not have"
                if shape_at(shape, sizes, self.most) != tuple(shape):
                    return f"a port of shape {tuple(shape)} has other sizes at the largest lengths"
        for sample in self.samples:
            for arrays, shapes, sides in (
                (sample.inputs, inputs, self.inputs),
                (sample.outputs, outputs, self.outputs),
            ):
                wanted = [shape_at(*one, sample.lengths) for one in zip(shapes, sides, strict=True)]
                if [tuple(array.shape) for array in arrays] != wanted:
                    return "an example has other sizes than its lengths say"
        return ""

    @staticmethod
    def load(folder: Path) -> ModelLengths:
        document = json.loads((folder / "lengths.json").read_text())
        samples: list[LengthSample] = []
        with np.load(folder / "arrays.npz", allow_pickle=False) as held:
            for number, said in enumerate(document["samples"]):
                count = sum(name.startswith(f"{number}_") for name in held.files)
                rest = iter([held[f"{number}_{place}"] for place in range(count)])
                first = [tuple(islice(rest, said[kind])) for kind in ("inputs", "outputs", "given")]
                samples.append(LengthSample(said["lengths"], first[0], first[1], first[2], tuple(rest)))
        return ModelLengths(
            tuple(Length(**one) for one in document["lengths"]),
            tuple(sizes_of(one) for one in document["inputs"]), tuple(sizes_of(one) for one in document["outputs"]),
            {name: sizes_of(one) for name, one in document["params"].items()}, tuple(samples),
        )  # fmt: skip
