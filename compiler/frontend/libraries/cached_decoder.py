"""A decoder of transformers as a model of one token a call, or of `chunk` tokens: `hf:llama?cache=64`.

Its own caches grow and are passed from call to call; hardware has caches of one size, which stay. So each layer gets
buffers for its keys and values, and where a token stands travels to it in the place of transformers' cache.
"""

# transformers may not be there, and has few types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from penstock.compiler.errors import PenstockError

_GROWING = {"dynamic", "longrope"}
"""Kinds of rotary positions whose angles depend on how long the text is."""
_NEVER = -1e9
"""Added to scores of places that are not attended to."""


class TokenPlace:
    """Where a token stands, under way to the layers."""

    is_sliding: tuple[bool, ...] = ()

    def __init__(self, place: torch.Tensor) -> None:
        self.place = place

    def get_seq_length(self) -> int:
        return 0


pytree.register_pytree_node(
    TokenPlace, lambda x: ([x.place], None), lambda leaves, _: TokenPlace(next(iter(leaves))),
    serialized_type_name="penstock.TokenPlace",
)  # fmt: skip


class CachedLayer(nn.Module):
    """One layer with its keys and values."""

    def __init__(self, layer: nn.Module, heads: int, width: int, places: int) -> None:
        super().__init__()
        self.layer = layer
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self.register_buffer("keys", torch.zeros(1, heads, places, width))
        self.register_buffer("values", torch.zeros(1, heads, places, width))

    def __getattr__(self, name: str) -> Any:
        """What the model asks its layers, such as which attention they have, the layer itself answers."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.layer(*(self._kept(x) for x in args), **{name: self._kept(x) for name, x in kwargs.items()})

    def _kept(self, value: Any) -> Any:
        return _Kept(self, value.place) if isinstance(value, TokenPlace) else value


class _Kept:
    """What a layer's attention takes for transformers' cache."""

    def __init__(self, layer: CachedLayer, place: torch.Tensor) -> None:
        self.layer, self.place = layer, place

    def update(self, keys: torch.Tensor, values: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        self.layer.keys.index_copy_(2, self.place, keys)
        self.layer.values.index_copy_(2, self.place, values)
        return self.layer.keys, self.layer.values


class CachedDecoder(nn.Module):
    """Tokens and their places in, the scores of the one behind the last out."""

    def __init__(self, model: Any, places: int, where: str) -> None:
        super().__init__()
        self.model = model
        self.places = places
        config = model.config.get_text_config()
        self.window: int | None = getattr(config, "sliding_window", None)
        kinds: list[str] | None = getattr(config, "layer_types", None)
        self.kinds = sorted(set(kinds)) if kinds else None
        heads = config.num_attention_heads
        key_heads = _key_heads(config)
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        rows = [x for x in model.modules() if isinstance(x, nn.ModuleList) and len(x) == config.num_hidden_layers]
        limit = getattr(config, "max_position_embeddings", places)
        odd = set(self.kinds or ()) - {"full_attention", "sliding_attention"}
        takes = inspect.signature(model.forward).parameters
        self.of_last: dict[str, int] = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}
        self.kept = "cache" if "cache" in takes else "past_key_values"  # the older name
        if "position_ids" not in takes:
            raise PenstockError(
                code="unknown-option", what="this model cannot be told where a token stands", where=where,
                limit="a decoder that takes position_ids; others count their tokens from the mask, as ALiBi does",
                hint="leave cache= out, or write a file.py",
            )  # fmt: skip
        if len(rows) != 1 or odd or places > limit:
            raise PenstockError(
                code="unknown-option",
                what=f"a cache of {places} places does not fit this model",
                where=where,
                limit=f"it has room for {limit}" if places > limit else
                "a decoder of attention layers, full or sliding" + (f", not {', '.join(sorted(odd))}" if odd else ""),
                hint="leave cache= out, or write a file.py",
            )  # fmt: skip
        for number, layer in enumerate(rows[0]):
            rows[0][number] = CachedLayer(layer, key_heads, width, places)

    def forward(self, token: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        answer = self.model(
            input_ids=token[None], position_ids=place[None], attention_mask=self._masks(place), use_cache=False,
            **{self.kept: TokenPlace(place)}, **self.of_last,
        )  # fmt: skip
        return answer.logits[0][-1:]

    def _masks(self, place: torch.Tensor) -> Any:
        """Added to the scores: nothing where a token may look; by the kind of attention if there are several."""
        numbers, rows = torch.arange(self.places), place[:, None]
        full = torch.where(numbers <= rows, 0.0, _NEVER)[None, None]
        near = full if self.window is None else torch.where(numbers > rows - self.window, full, _NEVER)
        if self.kinds is None:
            return near
        return {"full_attention": full, "sliding_attention": near}


def _key_heads(config: Any) -> int:
    """How many heads of keys its layers keep; Falcon's keep one, or each head's own, and say so in other words."""
    if getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False):
        return 1
    heads: int = getattr(config, "num_attention_heads", 0)
    return getattr(config, "num_key_value_heads", None) or heads


def check_attention(whole: Any, where: str) -> None:
    """Refuses heads that do not divide, and rotary positions whose angles change as the text grows."""
    config = whole.get_text_config()
    heads = getattr(config, "num_attention_heads", 0)
    key_heads = _key_heads(config)
    given: Any = getattr(config, "rope_parameters", None) or {}
    kinds = {str(x.get("rope_type", "default")) for x in (given, *given.values()) if isinstance(x, dict)}
    if not heads:
        what, limit = f"{config.model_type} has no attention heads", "a decoder of attention layers, full or sliding"
    elif heads % key_heads:
        what, limit = f"{heads} heads of queries share {key_heads} heads of keys", "a whole number of each"
    elif odd := sorted(kinds & _GROWING):
        what, limit = f"rotary positions of kind {odd[0]}", "angles that follow from a token's place alone"
    else:
        return
    raise PenstockError(
        code="unknown-option", what=what, where=where, limit=limit, hint="change its configuration, or write a file.py"
    )
