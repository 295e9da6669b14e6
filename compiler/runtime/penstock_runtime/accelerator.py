"""The accelerator as a function: `run` gives the model's answer to the model's own inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from .backends import Backend, open_backend
from .calls import CallList
from .errors import PackageError
from .generate import Generated, Show, generate
from .layout import Packed
from .package import Package, SharedLayers, open_package
from .ports import Array, Port, pad_rows, split_into_calls
from .state import NONE


class Accelerator:
    """A loaded package with one backend. Use it as a context manager or call `close`."""

    def __init__(self, package: Package, backend: Backend) -> None:
        self.package = package
        self.backend = backend
        self.layers = package.layers()
        """The layers that the accelerator computes in turn, and what of the model stands around them."""
        self.states = package.states()
        """What the model keeps between calls; `reset` makes the next one the first."""
        ports, kept = package.ports(), self.layers.held if self.layers else set[int]()
        self._ports = [p for index, p in enumerate(ports[0]) if index not in kept], ports[1]
        self.lengths = package.lengths()
        """The sizes that each call says by the shapes of its inputs."""
        self.host = package.host()
        """What runs on this machine, around the accelerator's calls; the model's ports are then its ports."""
        own = (self.host.inputs, self.host.outputs) if self.host else self._ports
        if self.layers is not None:
            own = self.layers.graph.inputs, self.layers.graph.outputs
        elif self.states is not None:
            entering, leaving = self.states.inputs, self.states.outputs
            own = tuple(
                [p for i, p in enumerate(side) if i not in hidden] for side, hidden in zip(own, (entering, leaving))
            )
        self.inputs, self.outputs = own

    def run(self, *inputs: Any) -> Any:
        """The model's answer: one array, or a tuple where the model has several outputs.

        An accelerator that was built for one example also takes N of them, which are run one after another.
        """
        outputs = self.run_all(inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run_all(self, inputs: Sequence[Any]) -> list[Array]:
        """As `run`, with a list of all outputs whatever their number."""
        if self.lengths is not None:
            if len(inputs) != len(self.inputs):
                split_into_calls(self.inputs, inputs)  # says what is missing
            return self.run_call([port.check_values(value) for port, value in zip(self.inputs, inputs)])[1]
        calls = split_into_calls(self.inputs, inputs)
        answers = [answer for _, answer in self.run_calls(calls.inputs)]
        if calls.form in ("rows", "stack"):
            return _join(answers, self.outputs, calls.form == "stack")
        if calls.form == "single":
            return [a[0] if a.shape[:1] == (1,) else a for a in answers[0]]
        return answers[0]

    def run_rows(self, rows: Any) -> Array:
        """Independent examples, one a row, for an accelerator of any batch size; the last call is padded.

        A row is an entry of the input's first dimension, or a whole input.
        """
        return self.run_rows_exact(rows)[1]

    def run_rows_exact(self, rows: Any) -> tuple[Array, Array]:
        """The accelerator's own numbers for each row, and the model's answers."""
        own = 1 if self.layers else len(self._ports[1])  # of a layer's results the first is its answer
        if len(self.inputs) != 1 or len(self.outputs) != 1 or own != 1:
            raise PackageError("rows need a model of one input and one output", "use run(...) instead")
        port = self.inputs[0]
        values = port.check_values(rows)
        if values.ndim and len(values) and values.shape[1:] == port.shape:
            calls = self.run_calls([[value] for value in values])
            return np.stack([exact[0] for exact, _ in calls]), np.stack([answer[0] for _, answer in calls])
        if values.shape[1:] != port.shape[1:] or values.ndim != len(port.shape):
            raise PackageError(f"input {port.name!r} has shape {values.shape}", f"pass rows of shape {port.shape[1:]}")
        if not len(values):
            raise PackageError(f"input {port.name!r} has no rows", "pass at least one example")
        calls = self.run_calls([[call] for call in pad_rows(values, port.shape[0])])
        exact, answers = (np.concatenate([call[part][0] for call in calls])[: len(values)] for part in (0, 1))
        return exact, answers

    def run_call(self, inputs: Sequence[Array], rows: int | None = None) -> tuple[list[Array], list[Array]]:
        """One call of the whole model: the accelerator's own numbers, and the answers.

        Where a call says how much it sees of what the model keeps, that is so many `rows`, or else all.
        """
        if self.lengths is None:
            return self.run_calls([inputs])[0]
        said = self.lengths.of_call(self.inputs, inputs, rows)
        return self._run_layers(self.layers, inputs, said) if self.layers else self._run_one(0, inputs, said)

    def read_call(self, inputs: Sequence[Array], rows: int | None = None) -> None:
        """One call for the sake of what the model keeps: nobody wants its answers."""
        if self.layers is None:
            self.run_call(inputs, rows)
            return
        said = self.lengths.of_call(self.inputs, inputs, rows) if self.lengths else {}
        graph = self.layers.graph.at(said)
        if (call_list := self.backend.call_list) is not None:
            graph.run_at_once(inputs, lambda given: self._run_list(call_list, given, said)[1], answers=False)
        else:
            graph.run_layers(inputs, lambda number, values: self._run_one(number, values, said)[1])

    def run_calls(self, calls: Sequence[Sequence[Array]]) -> list[tuple[list[Array], list[Array]]]:
        """Calls of the whole model, which overlap where the backend can."""
        if self.lengths is not None:
            return [self.run_call(inputs) for inputs in calls]
        if self.layers is not None:
            return [self._run_layers(self.layers, inputs, {}) for inputs in calls]
        if self.states is not None:
            return [self._run_one(0, inputs, {}) for inputs in calls]
        if self.host is None:
            return [(exact, self.dequantise(exact)) for exact in self._run_frames(calls)]
        host, prepared = self.host, [self.host.before(inputs) for inputs in calls]
        answers = self._run_frames([sent for sent, _ in prepared])
        for turn in range(host.turns - 1):
            again = [host.between(turn, kept, self.dequantise(a)) for a, (_, kept) in zip(answers, prepared)]
            answers = self._run_frames(again)
        return [(exact, host.after(kept, self.dequantise(exact))) for exact, (_, kept) in zip(answers, prepared)]

    def _run_layers(
        self, layers: SharedLayers, inputs: Sequence[Array], said: Mapping[str, int]
    ) -> tuple[list[Array], list[Array]]:
        """The accelerator's own numbers for the last layer, and the whole model's answers."""
        exact: list[Array] = []
        graph = layers.graph.at(said)
        if (call_list := self.backend.call_list) is not None:

            def call_layers(given: list[list[Array | None]]) -> list[list[Array]]:
                exact[:], answers = self._run_list(call_list, given, said)
                return answers

            return exact, graph.run_at_once(inputs, call_layers)

        def call(number: int, values: list[Array]) -> list[Array]:
            exact[:], answers = self._run_one(number, values, said)
            return answers

        return exact, graph.run_whole(inputs, call)

    def _run_one(self, layer: int, inputs: Sequence[Array], said: Mapping[str, int]) -> tuple[list[Array], list[Array]]:
        """One call with what is held for it: a layer's weights, and its state, which is then kept anew."""
        sent, known = self._enter(layer, inputs, said)
        whole = self.states.whole if self.states else NONE
        for turn in range(self.host.turns - 1 if self.host else 0):  # a model that keeps state has one
            assert self.host is not None
            sent = self.host.between(turn, known, self.dequantise(self._call(layer, sent, whole, said)))
        exact = self._call(layer, sent, whole, said)
        return exact, self._leave(layer, exact, known, said)

    def _run_list(
        self, call_list: CallList, given: Sequence[Sequence[Array | None]], said: Mapping[str, int]
    ) -> tuple[list[Array], list[list[Array]]]:
        """All layers by one start: the accelerator's own numbers for the last of them, and the answers of each."""
        like = given[0]  # what the layer before gives is no array yet, and none is looked at
        filled = [[np.zeros_like(of) if v is None else v for v, of in zip(values, like)] for values in given]
        entered = [self._enter(layer, values, said) for layer, values in enumerate(filled)]
        whole = self.states.whole if self.states else NONE
        numbers = [self._numbers(layer, sent, said) for layer, (sent, _) in enumerate(entered)]
        results = [self._in_shape(answer, whole, said) for answer in call_list(numbers, whole)]
        answers = [self._leave(layer, exact, entered[layer][1], said) for layer, exact in enumerate(results)]
        return results[-1], answers

    def _enter(self, layer: int, inputs: Sequence[Array], said: Mapping[str, int]) -> tuple[list[Any], dict[str, Any]]:
        """What a call of the accelerator is given, and the values that this machine knows of it."""
        given = self.states.enter(layer, inputs) if self.states else list(inputs)
        return self.host.at(said).before(given) if self.host else (given, {})

    def _leave(self, layer: int, exact: Sequence[Array], known: dict[str, Any], said: Mapping[str, int]) -> list[Array]:
        """The answers of a call, whose state is kept."""
        states = self.states
        whole = states.whole if states else NONE
        real = [None if i in whole else p.from_accelerator(v) for i, (v, p) in enumerate(zip(exact, self._ports[1]))]
        answers: list[Any] = self.host.at(said).after(known, real) if self.host else real
        if states is not None:
            states.keep(layer, exact, answers, known)
            answers = [answer for i, answer in enumerate(answers) if i not in states.outputs]
        return answers

    def _call(self, layer: int, sent: Sequence[Any], whole: frozenset[int], said: Mapping[str, int]) -> list[Array]:
        """The accelerator's own numbers in its ports' shapes; what is in `whole` stays as it lies in memory."""
        return self._in_shape(self.backend.call(self._numbers(layer, sent, said), whole), whole, said)

    def _numbers(self, layer: int, sent: Sequence[Any], said: Mapping[str, int]) -> list[Any]:
        """All inputs of a call in the accelerator's own numbers, a layer's weights among them."""
        numbers = [v if isinstance(v, Packed) else p.to_accelerator(v) for p, v in zip(self._ports[0], sent)]
        if self.lengths is not None:
            numbers = self.lengths.fill_up(self._ports[0], numbers, said)
        return self.layers.inputs(layer, numbers) if self.layers else numbers

    def _in_shape(self, results: Sequence[Array], whole: frozenset[int], said: Mapping[str, int]) -> list[Array]:
        found = [v if i in whole else v.reshape(p.shape) for i, (v, p) in enumerate(zip(results, self._ports[1]))]
        return found if self.lengths is None else self.lengths.leave(found, said, whole)

    def generate(
        self,
        prompt: str,
        tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        seed: int | None = None,
        show: Show | None = None,
    ) -> Generated:
        """A language model goes on with the prompt: by the likeliest token, or with a temperature by drawn ones.

        `show` is called with each piece of text, how many tokens there are by then, and how many a second.
        """
        return generate(self, prompt, tokens, temperature=temperature, top_k=top_k, seed=seed, show=show)

    def reset(self) -> None:
        """What the model keeps between calls is as before the first one."""
        if self.states is not None:
            self.states.reset()

    def run_exact(self, inputs: Sequence[Array]) -> list[Array]:
        """One call of the accelerator alone: quantise, execute, and return its own numbers in its ports' shapes."""
        return self._run_frames([inputs])[0]

    def _run_frames(self, frames: Sequence[Sequence[Array]]) -> list[list[Array]]:
        return self.run_numbers(
            [[port.to_accelerator(value) for port, value in zip(self._ports[0], frame)] for frame in frames]
        )

    def run_numbers(self, frames: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Calls in the accelerator's own numbers, and its own answers in its ports' shapes.

        Where layers share it, the calls go to one layer after the other.
        """
        entered = [(frame, dict[str, int]()) for frame in frames]
        if (lengths := self.lengths) is not None:
            entered = [lengths.enter(self._ports[0], frame) for frame in frames]
        given: list[Sequence[Any]] = [sent for sent, _ in entered]
        if (layers := self.layers) is not None:
            given = [layers.inputs(number % len(layers.names), frame) for number, frame in enumerate(given)]
        answers = [self._shaped(answer) for answer in self.backend.call_all(given)]
        if lengths is None:
            return answers
        return [lengths.leave(answer, said) for answer, (_, said) in zip(answers, entered)]

    def _shaped(self, answer: Sequence[Array]) -> list[Array]:
        return [value.reshape(port.shape) for value, port in zip(answer, self._ports[1])]

    def dequantise(self, outputs: Sequence[Array]) -> list[Array]:
        return [port.from_accelerator(value) for port, value in zip(self._ports[1], outputs)]

    def close(self) -> None:
        self.backend.close()
        self.package.close()

    def __enter__(self) -> Accelerator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def load(
    path: str | Path | None = None, *, backend: str | None = None, port: str | None = None, check: bool = True
) -> Accelerator:
    """Open a package: its folder, its archive, or by default the folder that this runtime lies in.

    By default an AMD device computes if the package has its bitstream and this machine XRT, else emulation. `port` is
    the board's serial port, or the number of the AMD device. With `check` every file is compared with the manifest
    first; turn it off to try changed sources.
    """
    package = open_package(here() if path is None else path)
    try:
        refuse(package.problems() if check else [])
        return Accelerator(package, open_backend(backend, package, port))
    except BaseException:
        package.close()
        raise


def here() -> Path:
    """The package that this runtime is part of: its folder, or its archive if it was imported from there."""
    return Path(__file__).parent.parent


def refuse(problems: Sequence[str]) -> None:
    """Stop if any file differs from the manifest."""
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise PackageError(problems[0] + more, "fetch the package again, or switch the check off")


def _join(answers: Sequence[Sequence[Array]], ports: Sequence[Port], stack: bool) -> list[Array]:
    """The answers to N calls: side by side along a leading 1, or stacked along a new first dimension."""
    joined: list[Array] = []
    for index, port in enumerate(ports):
        drop = 1 if port.shape[:1] == (1,) and not stack else 0
        if answers:
            parts = [answer[index] for answer in answers]
            joined.append(np.concatenate(parts) if drop else np.stack(parts))
        else:
            dtype = np.float32 if port.scale is not None else port.dtype
            joined.append(np.zeros((0, *port.shape[drop:]), dtype))
    return joined
