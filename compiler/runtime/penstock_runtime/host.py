"""What of a model runs on this machine instead of the accelerator: operations before and after it, and where the model
asks for it between several calls of it, through PyTorch.

They are stored as data: a list of ATen operations in JSON, tensors as arrays. Nothing is unpickled, and only
operations without side effects are looked up, so that reading a package does not execute anybody's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from .errors import PackageError
from .layout import Packed
from .lengths import at_sizes
from .ports import Array, Port, largest_difference
from .state import refuse_positions

GRAPH = "host/graph.json"
WHOLE = "layers/graph.json"
LAYER = "penstock.layer"
"""The operation that stands for a call of the accelerator with one layer's weights."""
CallLayer = Callable[[int, "list[Array]"], "list[Array]"]
"""Computes the layer of that number."""
CallLayers = Callable[["list[list[Array | None]]"], "list[list[Array]]"]
"""Computes all layers, one after the other; None stands for what the layer before gives."""
_HARMLESS = frozenset({
    "_embedding_bag_forward_only", "_unsafe_view", "all", "argsort", "bucketize", "count_nonzero", "cummax", "cummin",
    "cumprod", "detach", "index_add", "index_copy", "isin", "kthvalue", "lift_fresh_copy", "linear", "logcumsumexp",
    "median", "mode", "nanmedian", "one_hot", "reshape", "searchsorted", "sort", "take", "tril", "triu",
})  # fmt: skip
"""Without side effects, though PyTorch does not count them as core or pointwise."""


_UNWRITTEN = ("empty", "new_empty")
"""They give whatever the memory held before; here zeros."""


class HostGraph:
    """The host's part of a model. `before` gives the accelerator's inputs, `after` makes the model's answer.

    Where the accelerator needs what the host makes of its own results, it is called again: `take_turns` has all calls
    but the last, `turns` says how many there are. What an earlier call lacks is zero in it, and what it makes of that
    nobody reads.

    Around layers that the accelerator computes in turn it is one list of operations, which `run_whole` runs.
    """

    def __init__(
        self, document: Mapping[str, Any], values: Mapping[str, Array], said: Mapping[str, int] | None = None
    ) -> None:
        self.sized = document
        """As it is at all lengths that a call may say; `document` is it at the largest, or at those that are `said`."""
        self.document: Mapping[str, Any] = at_sizes(document, document.get("lengths", {}) if said is None else said)
        self.inputs = [Port.from_json(p) for p in self.document["inputs"]]
        self.outputs = [Port.from_json(p) for p in self.document["outputs"]]
        self._at: dict[tuple[int, ...], HostGraph] = {}
        self._torch = _import_torch()
        self._values = {name: self._torch.from_numpy(np.array(value)) for name, value in values.items()}

    def at(self, said: Mapping[str, int]) -> HostGraph:
        """The same as it is at these lengths."""
        key = tuple(int(said[name]) for name in self.sized.get("lengths", {}))
        if not key:
            return self
        if key not in self._at:  # a text has another size with each token, but all layers of a call have one
            self._at = {key: HostGraph(self.sized, {}, said)}
            self._at[key]._values = self._values
        return self._at[key]

    def before(self, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The accelerator's inputs, and the values that `after` will need. What stays packed only passes."""
        known: dict[str, Any] = {}
        for port, value in zip(self.inputs, inputs):
            known[port.name] = value if isinstance(value, Packed) else self._tensor(np.array(value, port.dtype))
        self._check_look_ups(known)
        self._run(self.document["before"], known)
        refuse_positions(known, self.document.get("positions", {}))
        return self._sent(known), known

    @property
    def turns(self) -> int:
        """How often the accelerator is called for one answer of the model."""
        return 1 + len(self.document.get("between", ()))

    def between(self, turn: int, known: dict[str, Any], outputs: Sequence[Array]) -> list[Any]:
        """The accelerator's inputs for its next call, from what it answered in that turn; `known` grows."""
        stage = self.document["between"][turn]
        answers = dict(zip(self.document["accelerator"]["outputs"], outputs))
        known |= {name: self._tensor(np.array(answers[name])) for name in stage["outputs"]}
        self._run(stage["operations"], known)
        return self._sent(known)

    def take_turns(
        self, inputs: Sequence[Any], call: Callable[[list[Any]], list[Array]]
    ) -> tuple[list[Any], dict[str, Any]]:
        """All calls but the last: its inputs, and every value that is known by then."""
        sent, known = self.before(inputs)
        for turn in range(self.turns - 1):
            sent = self.between(turn, known, call(sent))
        return sent, known

    def chosen(self, known: Mapping[str, Any]) -> list[Array]:
        """Whole numbers and conditions that were computed between calls: what became of the rest hangs on them."""
        names = [node["name"] for turn in self.document.get("between", ()) for node in turn["operations"]]
        values = [known[name] for name in names if isinstance(known[name], self._torch.Tensor)]
        return [value.numpy() for value in values if not value.is_floating_point()]

    def _sent(self, known: Mapping[str, Any]) -> list[Any]:
        """The accelerator's inputs in their order; zeros for those that the host makes later."""
        later = self.document["accelerator"].get("later", {})
        found: list[Any] = []
        for name in self.document["accelerator"]["inputs"]:
            value = known.get(name)
            if value is None and name in later:
                found.append(np.zeros(later[name], np.float32))
            else:
                found.append(value if isinstance(value, Packed) else np.ascontiguousarray(known[name].numpy()))
        return found

    def after(self, known: Mapping[str, Any], outputs: Sequence[Array | None]) -> list[Any]:
        """The model's results, from what the accelerator answered; None for those that it keeps."""
        values = dict(known)
        for name, value in zip(self.document["accelerator"]["outputs"], outputs):
            values[name] = None if value is None else self._tensor(np.array(value))
        self._run(self.document["after"], values)
        results = [values[name] for name in self.document["results"]]
        return [
            None if result is None else np.ascontiguousarray(result.numpy()).reshape(port.shape)
            for result, port in zip(results, self.outputs)
        ]

    def _tensor(self, values: Array) -> Any:
        return self._torch.from_numpy(values)

    def run_whole(self, inputs: Sequence[Array], call_layer: CallLayer) -> list[Array]:
        """The model's results, with the layers computed by `call_layer` where they stand."""
        known = self._run_nodes(self.document["nodes"], inputs, call_layer)
        results = [known[name] for name in self.document["results"]]
        return [np.ascontiguousarray(r.numpy()).reshape(p.shape) for r, p in zip(results, self.outputs)]

    def run_layers(self, inputs: Sequence[Array], call_layer: CallLayer) -> None:
        """The same for the sake of what the layers keep: what stands behind the last of them is left out."""
        nodes = self.document["nodes"]
        last = max(index for index, node in enumerate(nodes) if node["op"] == LAYER)
        self._run_nodes(nodes[: last + 1], inputs, call_layer)

    def run_at_once(self, inputs: Sequence[Array], call_layers: CallLayers, *, answers: bool = True) -> list[Array]:
        """As `run_whole`, where all layers are one call: what they need of this machine is computed before, and what
        needs them after it. Without `answers` only the layers are wanted, for the sake of what they keep."""
        known = self._entered(inputs)
        calls: list[Mapping[str, Any]] = []
        late: list[Mapping[str, Any]] = []
        missing: set[str] = set()
        for node in self.document["nodes"]:
            if node["op"] == LAYER:
                calls.append(node)
            elif missing.isdisjoint(_mentioned([node["args"], list(node["kwargs"].values())])):
                known[node["name"]] = self.apply(node, known)
                continue
            else:
                late.append(node)
            missing.add(node["name"])
        given = [
            [None if missing & set(_mentioned(a)) else self._array(a, known) for a in node["args"]] for node in calls
        ]
        for node, answered in zip(calls, call_layers(given)):
            known[node["name"]] = [self._torch.from_numpy(np.array(value)) for value in answered]
        if not answers:
            return []
        self._run(late, known)
        results = [known[name] for name in self.document["results"]]
        return [np.ascontiguousarray(r.numpy()).reshape(p.shape) for r, p in zip(results, self.outputs)]

    def _array(self, argument: Any, known: Mapping[str, Any]) -> Array:
        return np.ascontiguousarray(self._argument(argument, known).numpy())

    def _run_nodes(
        self, nodes: Sequence[Mapping[str, Any]], inputs: Sequence[Array], call_layer: CallLayer
    ) -> dict[str, Any]:
        known = self._entered(inputs)
        self._run(nodes, known, call_layer)
        return known

    def _entered(self, inputs: Sequence[Array]) -> dict[str, Any]:
        """The values that there are at the beginning."""
        known: dict[str, Any] = {}
        for port, value in zip(self.inputs, inputs):
            known[port.name] = self._torch.from_numpy(np.array(value, port.dtype))
        self._check_look_ups(known)
        return known

    def _run(
        self, nodes: Sequence[Mapping[str, Any]], known: dict[str, Any], call_layer: CallLayer | None = None
    ) -> None:
        with self._torch.no_grad():
            for node in nodes:
                if node["op"] == LAYER and call_layer is not None:
                    given = [self._array(a, known) for a in node["args"]]
                    answered = call_layer(int(node["number"]), given)
                    known[node["name"]] = [self._torch.from_numpy(np.array(value)) for value in answered]
                    continue
                known[node["name"]] = self.apply(node, known)

    def apply(self, node: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
        """What one operation answers, of what is known before it."""
        try:
            args = [self._argument(a, known) for a in node["args"]]
            kwargs = {k: self._argument(a, known) for k, a in node["kwargs"].items()}
            return find_operation(self._torch, node["op"])(*args, **kwargs)
        except (RuntimeError, IndexError, TypeError, KeyError) as error:
            what = f"{node['op']} in layer {node['layer']!r} failed: {str(error).splitlines()[0]}"
            raise PackageError(what, "check the inputs") from error

    def _argument(self, value: Any, known: Mapping[str, Any]) -> Any:
        if isinstance(value, list):
            return [self._argument(v, known) for v in value]  # type: ignore[reportUnknownVariableType]
        if not isinstance(value, dict):
            return value
        kind, text = str(*value), str(*value.values())  # type: ignore[reportUnknownArgumentType]
        if kind == "value":
            return known[text] if text in known else self._values[text]
        if kind == "float":
            return float(text)
        found = getattr(self._torch, text, None)
        if kind not in ("dtype", "layout", "memory_format") or type(found).__name__ != kind:
            raise PackageError(f"the host part has an argument {kind} {text!r}", "fetch the package again")
        return found

    def _check_look_ups(self, known: Mapping[str, Any]) -> None:
        """Entries outside of a table would be read from other memory, or end in an error without a name."""
        for name, size in self.document["tables"].items():
            least, most = int(known[name].min()), int(known[name].max())
            if least < 0 or most >= size:
                raise PackageError(
                    f"input {name!r} has values from {least} to {most}", f"its table has entries 0 to {size - 1}"
                )


def _mentioned(argument: Any) -> list[str]:
    """The values that an argument is made of."""
    if isinstance(argument, list):
        return [name for one in cast("list[Any]", argument) for name in _mentioned(one)]
    found = cast("dict[str, Any]", argument).get("value") if isinstance(argument, dict) else None
    return [] if found is None else [str(found)]


def compare_whole(ours: Sequence[Array], theirs: Sequence[Array]) -> dict[str, Any]:
    """Our answers beside PyTorch's: floats by their difference, indices by how many are equal."""
    error, undefined, equal, total = None, 0, 0, 0
    for a, b in zip(ours, theirs):
        if a.dtype.kind == "f":
            apart, odd = largest_difference(a, b.reshape(a.shape))
            error, undefined = max(error or 0.0, apart), undefined + odd
        else:
            equal, total = equal + int(np.count_nonzero(a == b.reshape(a.shape))), total + a.size
    return {"max_abs_error": error, "undefined": undefined, "indices": total, "indices_equal": equal}


def find_operation(torch: Any, name: str) -> Any:
    """An ATen operation by its full name ("aten.embedding.default"); only those that compute and do nothing else."""
    if name == "getitem":
        return lambda values, index: values[index]  # type: ignore[reportUnknownLambdaType]
    namespace, _, rest = name.partition(".")
    base, _, overload = rest.partition(".")
    operation = getattr(getattr(torch.ops.aten, base, None), overload, None) if namespace == "aten" else None
    if operation is None or not is_pure(torch, operation, base):
        raise PackageError(f"the host part uses {name}, which is no operation that this runtime runs",
                           "install a newer PyTorch, or fetch the package again")  # fmt: skip
    if base.startswith(_UNWRITTEN):
        return _zeroed(operation)
    return operation


def _zeroed(operation: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        return operation(*args, **kwargs).zero_()

    return run


def is_pure(torch: Any, operation: Any, base: str) -> bool:
    tags = getattr(operation, "tags", ())
    schema = getattr(operation, "_schema", None)
    writes = base.endswith("_") or schema is None or schema.is_mutable
    if writes or torch.Tag.nondeterministic_seeded in tags:
        return False
    return torch.Tag.core in tags or torch.Tag.pointwise in tags or base in _HARMLESS


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise PackageError(
            "parts of this model run on the host through PyTorch, which is not installed",
            "pip install torch (its CPU build will do); report.html lists these parts",
        ) from error
    return torch
