"""Typical inputs of a model from a file of arrays: `MODEL?calibration=FILE`. Plain numbers, no code.

The first call's are the model's example inputs, which its answers are held against; on all of them quantisation
measures how large numbers get. What random numbers leave of a trained model in eight bits says little.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from penstock.compiler.array_files import BadArraysError, read_arrays
from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.interpreter.rows import split_rows

MOST_BYTES = 1 << 30
MOST_CALLS = 4096
_IN_ORDER = "arr_"
"""How np.savez names arrays that were given no names."""
_HINT = "write it with np.savez('inputs.npz', name=rows) or np.save('inputs.npy', rows), a row a call"


def with_typical_inputs(model: LoadedModel, path: Path) -> LoadedModel:
    where = f"{path.name} of {model.name}"
    arrays = _read(path, where)
    names = input_names(model)
    rows = [
        _fitting(arrays[key], like, f"input {name!r} in {where}")
        for key, name, like in zip(_keys(arrays, names, where), names, model.example_inputs, strict=True)
    ]
    counts = {name: len(one) for name, one in zip(names, rows, strict=True)}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise _refused(f"the inputs have different numbers of calls: {said}", where, "", "give a row a call of each")
    if len(rows[0]) > MOST_CALLS:
        raise _refused(f"it has {len(rows[0])} calls", where, f"at most {MOST_CALLS}", "give fewer typical inputs")
    return replace(model, example_inputs=tuple(one[0] for one in rows), typical=tuple(rows))


def cut_to(model: LoadedModel, like: LoadedModel) -> LoadedModel:
    """With the beginning of another's typical inputs as its own example, where that is the same model but larger."""
    pairs = list(zip(model.example_inputs, like.example_inputs, strict=False))
    fits = len(pairs) == len(model.example_inputs) and all(
        own.ndim == x.ndim and all(n <= most for n, most in zip(own.shape, x.shape, strict=True)) for own, x in pairs
    )
    if not fits or not like.typical:
        return model
    cut = tuple(x[tuple(slice(n) for n in own.shape)].clone() for own, x in pairs)
    return replace(model, example_inputs=cut)


def input_names(model: LoadedModel) -> list[str]:
    """As the file of the model names them, else as forward does."""
    count = len(model.example_inputs)
    own: Sequence[str] = getattr(model.module, "input_names", ())
    if len(own) == count:
        return list(own)
    try:
        known = list(inspect.signature(model.module.forward).parameters.values())
    except (TypeError, ValueError):
        known = []
    named = [one.name for one in known if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return named[:count] if len(named) >= count else [f"input{i}" for i in range(count)]


def _keys(arrays: Mapping[str, Array], names: list[str], where: str) -> list[str]:
    """The file's name for each input; one array, or arrays without names, go by their order."""
    if len(arrays) == len(names) and (len(names) == 1 or all(key.startswith(_IN_ORDER) for key in arrays)):
        return sorted(arrays, key=lambda key: (len(key), key))
    said = {name: name if name in arrays else name.replace(":", "_").replace("/", "_") for name in names}
    if missing := next((name for name, key in said.items() if key not in arrays), None):
        takes = f"the model takes {', '.join(names)}"
        raise _refused(f"there is no array {missing!r}", where, takes, nearest(missing, list(arrays), _HINT))
    if unknown := next((key for key in arrays if key not in said.values()), None):
        raise _refused(f"no input is called {unknown!r}", where, f"the model takes {', '.join(names)}", "leave it out")
    return [said[name] for name in names]


def _read(path: Path, where: str) -> dict[str, Array]:
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise PenstockError(code="calibration-file", what=f"the file {kind}", where=str(path), hint="check the path")
    try:
        found = read_arrays(path, path.name, MOST_BYTES)
    except BadArraysError as error:
        raise _refused(error.what, where, error.limit or ".npz or .npy of numbers", _HINT) from error
    if not found:
        raise _refused("it holds no arrays", where, "", _HINT)
    return found


def _fitting(values: Array, like: torch.Tensor, where: str) -> torch.Tensor:
    """A call's numbers a row, of the type that the model takes."""
    if values.dtype.kind not in "fiub":
        raise _refused(f"its values are {values.dtype}", where, "numbers", _HINT)
    wanted = np.dtype(str(like.dtype).removeprefix("torch.").replace("bfloat16", "float32"))
    if wanted.kind == "f":
        with np.errstate(over="ignore"):
            finite = np.all(np.isfinite(values.astype(wanted)))
        if not finite:
            raise _refused(
                f"it holds NaN, infinity or what is too large for {wanted}", where, "", "leave such rows out"
            )
    elif values.dtype.kind == "f" and not np.array_equal(values, np.rint(values)):
        raise _refused(f"its values are fractions, or none, and the model takes {wanted}", where, "", "round them")
    elif values.size:
        low, high = (0, 1) if wanted.kind == "b" else (np.iinfo(wanted).min, np.iinfo(wanted).max)
        if values.min() < low or values.max() > high:
            raise _refused(f"its values do not fit {wanted}", where, f"{low} to {high}", "check the file")
    shape = tuple(like.shape)
    rows = values[None] if values.shape == shape and values.shape[1:] != shape else values
    try:
        batches = split_rows(rows, shape, where)
    except PenstockError as error:
        calls = ", ".join(map(str, shape))
        raise _refused(
            f"it has shape {values.shape}", where, f"the model takes {shape}", f"give a row a call: (calls, {calls})"
        ) from error
    if not len(batches):
        raise _refused("it has no rows", where, "", _HINT)
    return torch.as_tensor(np.array(batches, wanted)).to(like.dtype)


def _refused(what: str, where: str, limit: str, hint: str) -> PenstockError:
    return PenstockError(code="calibration-values", what=what, where=where, limit=limit, hint=hint)
