"""Text as the tokens that a model counts in, and back: characters by their code points, or a tokenizer.json."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from .errors import PackageError


class Tokenizer(Protocol):
    """What a model brings so that people can write to it."""

    size: int
    """Tokens are below it."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


class Characters:
    """Token N is character N."""

    def __init__(self, points: Sequence[int]) -> None:
        self._characters = [chr(int(point)) for point in points]
        self._numbers = {character: number for number, character in enumerate(self._characters)}
        self.size = len(self._characters)

    def encode(self, text: str) -> list[int]:
        unknown = "".join(sorted(set(text) - set(self._numbers)))
        if unknown:
            known = "".join(self._characters)
            raise PackageError(f"the model has no token for {unknown!r}", f"its characters are {known!r}")
        return [self._numbers[character] for character in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self._characters[token] for token in tokens)


class TokenizerFile:
    """A tokenizer.json, by the package `tokenizers`."""

    def __init__(self, document: str) -> None:
        try:
            tokenizers: Any = import_module("tokenizers")
        except ImportError as error:
            raise PackageError(
                "this model's text needs the package tokenizers, which is not installed", "pip install tokenizers"
            ) from error
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(document)
        except Exception as error:  # the library raises nothing narrower
            raise PackageError(
                f"the tokenizer cannot be read ({str(error).splitlines()[0]})", "it has to be a tokenizer.json"
            ) from error
        self.size = int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens)))
