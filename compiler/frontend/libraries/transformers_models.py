"""`hf:gpt2?n_layer=2`: a model of transformers by its model type or class, and its configuration by keys."""

# transformers may not be there, and has few types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import torch

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.frontend.libraries.build import Recipe
from penstock.compiler.frontend.libraries.cached_decoder import CachedDecoder, check_attention
from penstock.compiler.frontend.libraries.called import Arguments
from penstock.compiler.frontend.libraries.examples import noise, numbers
from penstock.compiler.frontend.libraries.values import bad_option, input_option, known_only, size_option
from penstock.compiler.reference import LibraryReference

_PLAIN = ("int", "float", "bool", "str", "list", "tuple")
_SEQ = 16
_IMAGE_SIDE = 224
"""Where a configuration leaves open how large images are: what such models are trained with."""
_CHARACTERS = 128
"""Where a model takes characters by their numbers, without a vocabulary."""


def recipe(reference: LibraryReference, options: dict[str, Any]) -> Recipe:
    places, chunk = size_option(reference, "cache", 0), size_option(reference, "chunk", 1)
    if chunk > 1 and chunk > places:
        raise PenstockError(
            code="unknown-option", what=f"{chunk} tokens a call do not fit a cache of {places} places",
            where=str(reference), limit="chunk= is at most cache=", hint="give a larger cache=, or leave chunk= out",
        )  # fmt: skip
    model_class, config_class = _classes(reference, text=places > 0)
    config = _configured(reference, config_class, options)
    config.use_cache = False  # its caches grow and are passed; compiled models keep buffers of one size
    config.return_dict = True
    config._experts_implementation = "batched_mm"  # weights of the chosen experts: no sorting of tokens by expert
    if places:
        check_attention(config, str(reference))
        return Recipe(
            lambda: model_class._from_config(config),
            lambda _: Arguments((_tokens(config, 1, chunk, 1)[0], torch.arange(chunk))),
            lambda module: CachedDecoder(module, places, str(reference)).eval(),
        )
    return Recipe(lambda: model_class._from_config(config), lambda module: _arguments(reference, module, config))


def _classes(reference: LibraryReference, text: bool) -> tuple[Any, Any]:
    """The class of the model and of its configuration, by `gpt2` or by `GPT2LMHeadModel`.

    By its type it is the bare model, or with `text` the one that gives scores of tokens.
    """
    import transformers  # pyright: ignore[reportMissingImports]
    from transformers.models.auto.modeling_auto import (  # pyright: ignore[reportMissingImports]
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_MAPPING_NAMES,
    )

    name = reference.model
    names: Any = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if text else MODEL_MAPPING_NAMES
    if name in names:
        found: Any = names[name]
        name = found if isinstance(found, str) else found[0]
    model_class: Any = getattr(transformers, name, None) if name.isidentifier() else None
    is_model = inspect.isclass(model_class) and issubclass(model_class, transformers.PreTrainedModel)
    config_class = getattr(model_class, "config_class", None) if is_model else None
    if config_class is None:
        raise PenstockError(
            code="unknown-model", what=f"transformers has no model {reference.model!r}", where=str(reference),
            hint=nearest(reference.model, MODEL_MAPPING_NAMES, "name a model type (gpt2) or a class (GPT2LMHeadModel)"),
        )  # fmt: skip
    return model_class, config_class


def _configured(reference: LibraryReference, config_class: Any, options: dict[str, Any]) -> Any:
    """A configuration of plain values; what is a mapping, or private to transformers, is left as it is."""
    known: dict[str, Any] = {}
    kinds: dict[str, Any] = {}
    aliases: dict[str, str] = getattr(config_class, "attribute_map", {})
    for name, parameter in inspect.signature(config_class.__init__).parameters.items():
        plain = any(word in str(parameter.annotation) for word in _PLAIN) or parameter.annotation in (int, float, bool)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and plain and name != "use_cache":
            known[name], kinds[name] = parameter.default, parameter.annotation
    known |= {alias: known[name] for alias, name in aliases.items() if name in known}
    known_only(reference, options, known)
    given = {key: _as_asked(value, kinds.get(aliases.get(key, key))) for key, value in options.items()}
    saved = _saved(reference, config_class)
    special = {} if saved else _special_tokens(known, given)
    return config_class.from_dict({**special, **saved, **given})


def _as_asked(value: Any, kind: Any) -> Any:
    """A value as the configuration, which is strict, asks for it: `ratio=2` is 2.0, and one number may be a list."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    lists = [one for one in kinds if (get_origin(one) or one) in (list, tuple)]
    if isinstance(value, tuple):
        return list(value)
    if type(value) is int and int not in kinds:
        if float in kinds:
            return float(value)
        return [value] if lists else value
    return value


def _special_tokens(known: dict[str, Any], given: dict[str, Any]) -> dict[str, int]:
    """Padding and the like are numbers of the library's own vocabulary: what a smaller one does not have becomes 0."""
    size = given.get("vocab_size", known.get("vocab_size"))
    if not isinstance(size, int):
        return {}
    tokens = {key: value for key, value in known.items() if key.endswith("_token_id") and key not in given}
    return {key: 0 for key, value in tokens.items() if isinstance(value, int) and value >= size}


def _saved(reference: LibraryReference, config_class: Any) -> dict[str, Any]:
    """What config.json says in the folder that the weights come from: data, of which no code is followed."""
    weights = Path(dict(reference.options).get("weights", ""))
    path = (weights.parent if weights.suffix == ".json" else weights) / "config.json"
    if weights == Path() or not path.is_file():
        return {}
    try:
        said: Any = json.loads(path.read_bytes())
        kind, quantised = said.get("model_type"), said.get("quantization_config")
    except (ValueError, RecursionError, AttributeError, OSError) as error:
        raise _config_refused(path, f"not a configuration: {error}", "save the model anew") from error
    if kind != config_class.model_type:
        raise _config_refused(
            path, f"it is a model of type {kind!r}", f"{reference.model} is {config_class.model_type!r}"
        )
    if quantised:
        raise _config_refused(path, "its weights are quantised", "give it in half or single precision: see --quantize")
    dropped = ("auto_map", "dtype", "torch_dtype", "transformers_version", "use_cache")
    return {key: value for key, value in said.items() if key not in dropped and not key.startswith("_")}


def _config_refused(path: Path, what: str, hint: str) -> PenstockError:
    return PenstockError(code="weights-file", what=what, where=str(path), hint=hint)


def _arguments(reference: LibraryReference, module: Any, config: Any) -> Arguments:
    """What the model's `forward` is called with: tokens, pixels or spectra, by the names that it gives them."""
    batch, seq = size_option(reference, "batch", 1), size_option(reference, "seq", _SEQ)
    makers = {
        "input_ids": lambda: _tokens(config, batch, seq, 1),
        "pixel_values": lambda: noise(batch, *_image(config)),
        "input_features": lambda: noise(batch, *_spectrum(config)),
        "inputs_embeds": lambda: noise(batch, seq, config.hidden_size),
        "hidden_states": lambda: noise(batch, seq, config.hidden_size),
        **_signals(config, batch, seq),
    }
    taken = inspect.signature(module.forward).parameters
    if (shape := input_option(reference)) is not None and module.main_input_name != "input_ids":
        makers = {module.main_input_name: lambda: noise(*shape)}
    main = next((name for name in (module.main_input_name, *makers) if name in makers and name in taken), None)
    if main is None:
        raise bad_option(
            reference, f"it is not known what {type(module).__name__} takes ({module.main_input_name})",
            "give its shape, input=1,64,3, if it is one tensor of real numbers; "
            "else write a file.py with a function that returns (module, example_inputs)",
        )  # fmt: skip
    named = {main: makers[main]()}
    if main == "input_ids" and "pixel_values" in taken:
        named["pixel_values"] = makers["pixel_values"]()
    if main == "past_values" and "past_time_features" in taken:
        named |= _series(config, batch)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in taken:
        named["decoder_input_ids"] = _tokens(config, batch, seq, 2)
    return Arguments(named=named)


def _signals(config: Any, batch: int, seq: int) -> dict[str, Callable[[], torch.Tensor]]:
    """Series, spectra and sound, where the configuration says how long they are; of sound as much as gives `seq`."""
    if hasattr(config, "context_length") and hasattr(config, "lags_sequence"):
        return {"past_values": lambda: noise(batch, *_past(config))}
    if hasattr(config, "context_length") and hasattr(config, "num_input_channels"):
        return {"past_values": lambda: noise(batch, config.context_length, config.num_input_channels)}
    if hasattr(config, "max_length") and hasattr(config, "num_mel_bins"):
        return {"input_values": lambda: noise(batch, config.max_length, config.num_mel_bins)}
    if not hasattr(config, "conv_kernel") or not hasattr(config, "conv_stride"):
        return {}
    samples = seq
    for kernel, stride in zip(reversed(config.conv_kernel), reversed(config.conv_stride), strict=True):
        samples = (samples - 1) * stride + kernel
    return {"input_values": lambda: noise(batch, samples)}


def _past(config: Any) -> tuple[int, ...]:
    """Of a forecaster: as many steps as it looks at, and those to which its longest lag reaches back."""
    steps = int(config.context_length) + max(map(int, config.lags_sequence))
    return (steps, int(config.input_size)) if config.input_size > 1 else (steps,)


def _series(config: Any, batch: int) -> dict[str, torch.Tensor]:
    """What a forecaster is called with beside the past: what is known of each step, and of the series as a whole."""
    (steps, *_), features, ahead = _past(config), int(config.num_time_features), int(config.prediction_length)
    named = {
        "past_time_features": noise(batch, steps, features),
        "past_observed_mask": torch.ones(batch, *_past(config)),
        "future_time_features": noise(batch, ahead, features),
        "future_values": noise(batch, ahead, *_past(config)[1:]),
    }
    if config.num_static_categorical_features:
        named["static_categorical_features"] = numbers(0, 1, batch, int(config.num_static_categorical_features), seed=1)
    if config.num_static_real_features:
        named["static_real_features"] = noise(batch, int(config.num_static_real_features))
    return named


def _tokens(config: Any, batch: int, seq: int, seed: int) -> torch.Tensor:
    """Of the vocabulary, without the few first ones, which often are padding and the like."""
    size = getattr(config.get_text_config(), "vocab_size", None) or _CHARACTERS
    return numbers(4, int(size), batch, seq, seed=seed)


def _image(config: Any) -> tuple[int, int, int]:
    vision = getattr(config, "vision_config", config)
    size: Any = getattr(vision, "image_size", None) or _IMAGE_SIDE
    height, width = (size, size) if isinstance(size, int) else (size[0], size[1])
    return int(getattr(vision, "num_channels", 3)), int(height), int(width)


def _spectrum(config: Any) -> tuple[int, int]:
    return int(config.num_mel_bins), 2 * int(config.max_source_positions)
