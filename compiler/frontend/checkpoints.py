"""Weights from safetensors files, single or sharded: plain numbers, no code. `MODEL?weights=FILE_OR_FOLDER&prefix=…`.

All headers are compared with the model first, which reads no number: what is missing, left over or of another form is
told at once and whole. Then tensor after tensor is read into its place.
"""

# some of torch's and safetensors' functions come without types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from penstock.compiler.errors import PenstockError

_INDEX = ".safetensors.index.json"
_MOST_INDEX_BYTES = 1 << 26
_FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_OTHERS = {"I64": torch.int64, "I32": torch.int32, "BOOL": torch.bool}
_NUMBER = re.compile(r"(?<![A-Za-z0-9_])\d+(?![A-Za-z0-9_])")


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file, by what the file's header says."""

    file: Path
    shape: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class Checkpoint:
    where: Path
    prefix: str
    tensors: Mapping[str, StoredTensor]

    @staticmethod
    def open(where: Path, prefix: str) -> Checkpoint:
        """Reads the headers of all files."""
        found: dict[str, StoredTensor] = {}
        files, index = _files(where)
        for file in files:
            with _reading(file) as opened:
                for name in opened.keys():  # noqa: SIM118  (no mapping: it has no other way to its names)
                    if name in found:
                        raise _refused(f"{name!r} is in {found[name].file.name} and in {file.name}", where)
                    part = opened.get_slice(name)
                    found[name] = StoredTensor(file, tuple(part.get_shape()), str(part.get_dtype()))
        if index is not None and (odd := {name for name, file in index.items() if not _holds(found, name, file)}):
            raise _refused(f"its index names what is not in the files: {together(odd)}", where)
        return Checkpoint(where, prefix, found)

    def fill(self, module: nn.Module) -> None:
        """Puts its numbers into the module; one that has shapes only is just compared with it."""
        state = module.state_dict(keep_vars=True)
        by_name = self._named(module, state)
        _compare(module, state, by_name, self)
        if any(x.is_meta for x in state.values()):
            return
        odd: list[str] = []
        names = sorted((name for name in by_name if name in state), key=lambda name: by_name[name][1].file)
        for file, own in _by_file(names, by_name):
            with _reading(file) as opened, torch.no_grad():
                odd += [n for n in own if not _put(state[n], opened.get_tensor(by_name[n][0]))]
        if odd:
            raise _refused(f"NaN or infinite numbers in {together(odd)}", self.where, "train or convert it anew")
        if untied := _untied(state, by_name):
            raise _refused(f"one tensor in the model, several in the file: {together(untied)}", self.where)

    def _named(self, module: nn.Module, state: Mapping[str, torch.Tensor]) -> dict[str, tuple[str, StoredTensor]]:
        """By the model's names: what stands before them in the file is given, or the model's own name of its body."""
        body = str(getattr(module, "base_model_prefix", "")) + "."
        ways = [{name.removeprefix(self.prefix): name for name in self.tensors if name.startswith(self.prefix)}]
        if not self.prefix and body != ".":
            ways.append({name.removeprefix(body): name for name in self.tensors if name.startswith(body)})
            ways.append({name if name in state else body + name: name for name in self.tensors})
        if not self.prefix:
            ways.append({new: name for name, new in _as_loaded(module, self.tensors).items()})
        best = max(ways, key=lambda way: len(way.keys() & state.keys()))
        return {name: (stored, self.tensors[stored]) for name, stored in best.items()}


def _as_loaded(module: nn.Module, names: Iterable[str]) -> dict[str, str]:
    """What transformers calls tensors that files have by other names, as those of older releases: it says so itself."""
    if not any(kind.__module__ == "transformers.modeling_utils" for kind in type(module).__mro__):
        return {}
    mapping = importlib.import_module("transformers.conversion_mapping")
    # the others do not rename but compute, as by joining experts
    steps = [step for step in mapping.get_model_conversion_mapping(module) if not hasattr(step, "operations")]
    found: dict[str, str] = {}
    for name in names:
        new = name
        for step in steps:
            new, _ = step.rename_source_key(new)
        found[name] = new
    return found


def _compare(
    module: nn.Module,
    state: Mapping[str, torch.Tensor],
    by_name: Mapping[str, tuple[str, StoredTensor]],
    file: Checkpoint,
) -> None:
    given = {id(state[name]) for name in by_name if name in state}
    missing = [name for name, tensor in state.items() if id(tensor) not in given]
    computed = {name for name, _ in module.named_buffers()}
    known: Any = getattr(module, "_keys_to_ignore_on_load_unexpected", None) or ()
    extra = [n for n in by_name if n not in state and n not in computed and not any(re.search(k, n) for k in known)]
    odd = {n: why for n, (_, x) in by_name.items() if n in state and (why := _misfit(state[n], x))}
    if not (missing or extra or odd):
        return
    said = [f"not in the file: {together(missing)}"] if missing else []
    said += [f"not in the model: {together(extra)}"] if extra else []
    said += [f"{why}: {together(n for n in odd if odd[n] == why)}" for why in sorted(set(odd.values()))]
    raise _refused(
        "the tensors are not the model's; " + "; ".join(said), file.where,
        "give the sizes that the file was made for; if its names begin with more than the model's, as "
        f"{next(iter(file.tensors), 'model.layers.0.weight')!r}, give that as prefix=",
    )  # fmt: skip


def _misfit(own: torch.Tensor, stored: StoredTensor) -> str:
    if stored.shape != tuple(own.shape):
        return f"of shape {stored.shape} where the model has {tuple(own.shape)}"
    fits = stored.kind in _FLOATS if own.is_floating_point() else _OTHERS.get(stored.kind) == own.dtype
    return "" if fits else f"of type {stored.kind} where the model has {str(own.dtype).removeprefix('torch.')}"


def _put(own: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether all of it are numbers, also as the model keeps them."""
    own.copy_(value)
    return not own.is_floating_point() or bool(torch.isfinite(own).all())


def _untied(state: Mapping[str, torch.Tensor], by_name: Mapping[str, tuple[str, StoredTensor]]) -> list[str]:
    """Names of the file that are one tensor of the model, but not the same numbers."""
    groups: dict[int, list[str]] = {}
    for name in by_name:
        if name in state:
            groups.setdefault(id(state[name]), []).append(name)
    found: list[str] = []
    for names in (group for group in groups.values() if len(group) > 1):
        for name in names:
            stored, place = by_name[name]
            with _reading(place.file) as opened:
                if not torch.equal(state[name], opened.get_tensor(stored).to(state[name].dtype)):
                    found += names
                    break
    return found


def together(names: Iterable[str]) -> str:
    """All names; those that differ in a number only as one: `h.{0..11}.ln_1.weight`."""
    forms: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        forms.setdefault(_NUMBER.sub("{}", name, count=1), []).append(name)
    said: list[str] = []
    for form, members in forms.items():
        numbers = sorted(int(found.group()) for n in members if (found := _NUMBER.search(n)))
        run = len(members) > 1 and numbers == list(range(numbers[0], numbers[0] + len(members)))
        said += [form.replace("{}", f"{{{numbers[0]}..{numbers[-1]}}}")] if run else members
    return ", ".join(said)


def _files(where: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The files of tensors, and which of them the index says each tensor is in, if there is one."""
    if where.name.endswith(_INDEX) or not where.is_dir():
        if not where.is_file():
            raise _refused("the file does not exist", where, "check the path")
        return _shards(where) if where.name.endswith(_INDEX) else ([where], None)
    indices, files = sorted(where.glob(f"*{_INDEX}")), sorted(where.glob("*.safetensors"))
    if len(indices) > 1:
        raise _refused(f"several indices: {', '.join(x.name for x in indices)}", where, "name the one that is meant")
    if indices:
        return _shards(indices[0])
    if not files:
        pickles = any(where.glob("*.bin")) or any(where.glob("*.pt")) or any(where.glob("*.pth"))
        raise _refused(
            "the folder has no safetensors file", where,
            "save it with save_pretrained(..., safe_serialization=True): pickles can run code, and are not read"
            if pickles else "check the path",
        )  # fmt: skip
    return files, None


def _shards(index: Path) -> tuple[list[Path], dict[str, str]]:
    try:
        if index.stat().st_size > _MOST_INDEX_BYTES:
            raise ValueError("it is too large")
        document: Any = json.loads(index.read_bytes())
        named = cast("dict[str, str]", document["weight_map"])
        files = sorted(set(named.values()))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OSError) as error:
        raise _refused(f"not an index of safetensors files: {error}", index) from error
    if odd := [name for name in files if Path(name).name != name or not name.endswith(".safetensors")]:
        raise _refused(f"its files must lie beside it, {odd[0]!r} does not", index)
    if gone := [name for name in files if not (index.parent / name).is_file()]:
        raise _refused(f"files are missing: {', '.join(gone)}", index, "fetch all shards")
    return [index.parent / name for name in files], named


def _holds(found: Mapping[str, StoredTensor], name: str, file: str) -> bool:
    return name in found and found[name].file.name == file


def _by_file(names: list[str], by_name: Mapping[str, tuple[str, StoredTensor]]) -> Iterator[tuple[Path, list[str]]]:
    for file in dict.fromkeys(by_name[name][1].file for name in names):
        yield file, [name for name in names if by_name[name][1].file == file]


@contextmanager
def _reading(file: Path) -> Generator[Any]:
    try:
        opened: Any = safe_open(file, framework="pt")  # reads single tensors; the whole file may be large
        with opened as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        raise _refused(f"not a safetensors file: {error}", file) from error


def _refused(what: str, where: Path, hint: str = "check the file") -> PenstockError:
    return PenstockError(code="weights-file", what=what, where=str(where), hint=hint)
