"""Sizes of the decoder blocks by name, and what options make of them."""

from __future__ import annotations

from penstock.compiler.errors import PenstockError
from penstock.compiler.zoo._transformer import TransformerSizes

ModelShape = tuple[int, int, int, int, int]  # d, heads, kv, head, ffn

SHAPES: dict[str, dict[str, ModelShape]] = {
    "gpt2": {"tiny": (16, 2, 2, 8, 24), "small": (256, 4, 4, 64, 512), "real": (1024, 16, 16, 64, 4096)},
    "llama": {"tiny": (16, 4, 2, 4, 24), "small": (256, 8, 2, 32, 512), "real": (2048, 32, 4, 64, 5632)},
    "qwen": {"tiny": (12, 6, 2, 4, 20), "small": (256, 8, 2, 32, 512), "real": (896, 14, 2, 64, 4864)},
    "gemma": {"tiny": (16, 2, 1, 12, 24), "small": (256, 4, 1, 64, 512), "real": (1152, 4, 1, 256, 6912)},
}
TOKENS = {"tiny": (4, 6), "small": (32, 32), "real": (128, 512)}
"""Tokens of a prefill, and the cache of a decode."""
MODES = ("prefill", "decode")


def sizes_of(
    family: str,
    *,
    size: str,
    mode: str,
    d: int = 0,
    heads: int = 0,
    kv: int = 0,
    head: int = 0,
    ffn: int = 0,
    seq: int = 0,
    cache: int = -1,
) -> TransformerSizes:
    """A named size with what is given put in its place. A head's width follows from d and heads if these are given."""
    if size not in TOKENS:
        raise bad_size(family, f"size={size!r}", f"sizes: {', '.join(TOKENS)}")
    if mode not in MODES:
        raise bad_size(family, f"mode={mode!r}", f"modes: {', '.join(MODES)}")
    named = SHAPES[family][size]
    tokens, cached = TOKENS[size]
    if (d or heads) and not head:
        width, count = d or named[0], heads or named[1]
        if count < 1 or width % count:
            raise bad_size(family, f"d={width}, heads={count}", "d is a multiple of heads, or head is given")
        head = width // count
    result = TransformerSizes(
        d=d or named[0],
        heads=heads or named[1],
        kv=kv or (heads if heads and named[1] == named[2] else named[2]),
        head=head or named[3],
        ffn=ffn or named[4],
        seq=seq or (tokens if mode == "prefill" else 1),
        cache=cache if cache >= 0 else (0 if mode == "prefill" else cached),
    )
    _check(family, result)
    return result


def _check(family: str, s: TransformerSizes) -> None:
    if min(s.d, s.heads, s.kv, s.head, s.ffn, s.seq) < 1:
        raise bad_size(family, str(s), "every size is a whole number of at least 1")
    if s.heads % s.kv:
        raise bad_size(
            family, f"heads={s.heads}, kv={s.kv}", "heads is a multiple of kv: so many share keys and values"
        )
    if family == "gpt2" and (s.heads * s.head != s.d or s.kv != s.heads):
        raise bad_size(
            family, f"d={s.d}, heads={s.heads}, kv={s.kv}, head={s.head}", "d = heads * head, and kv = heads"
        )
    if family != "gpt2" and s.head % 2:
        raise bad_size(family, f"head={s.head}", "rotary positions turn pairs: head is even")


def bad_size(family: str, what: str, limit: str) -> PenstockError:
    return PenstockError(
        code="bad-option", what=what, where=f"zoo:{family}", limit=limit,
        hint=f"for example zoo:{family}?size=tiny" + ("&mode=decode" if family in SHAPES else ""),
    )  # fmt: skip
