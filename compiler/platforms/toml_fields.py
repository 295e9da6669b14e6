"""Typed access to a TOML table. A missing, negative or misspelt field is refused by its name and place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import NoReturn, cast

from penstock.compiler.errors import PenstockError


def parse_toml(text: str, where: str, code: str) -> Fields:
    """The document's top table."""
    try:
        return Fields(tomllib.loads(text), where, code)
    except tomllib.TOMLDecodeError as error:
        raise PenstockError(
            code=code, what=f"not readable as TOML: {error}", where=where, hint="correct the file"
        ) from error


class Fields:
    """One table of a data file. Fields are taken out one by one; `finish` refuses what nobody asked for."""

    def __init__(self, table: Mapping[str, object], where: str, code: str) -> None:
        self.where = where
        self._left = dict(table)
        self._code = code

    def has(self, key: str) -> bool:
        return key in self._left

    def names(self) -> tuple[str, ...]:
        """Of the fields that nobody has asked for yet."""
        return tuple(self._left)

    def text(self, key: str) -> str:
        value = self._take(key)
        return value if isinstance(value, str) else self._refuse(key, value, "a text")

    def flag(self, key: str) -> bool:
        value = self._take(key)
        return value if isinstance(value, bool) else self._refuse(key, value, "true or false")

    def count(self, key: str, *, at_least: int = 0, default: int | None = None) -> int:
        if default is not None and key not in self._left:
            return default
        value = self._take(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            self._refuse(key, value, f"a whole number of at least {at_least}")
        return value

    def number(self, key: str, *, above: float | None = None, default: float | None = None) -> float:
        """A finite number that is not negative, or greater than `above` if that is given."""
        if default is not None and key not in self._left:
            return default
        value = self._take(key)
        wanted = "a number of at least 0" if above is None else f"a number above {above:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(key, value, wanted)
        number = float(value)
        fits = number >= 0 if above is None else number > above
        return number if fits and number != float("inf") else self._refuse(key, value, wanted)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key)
        items = self._list(key, value, "a list of texts")
        return tuple(i if isinstance(i, str) else self._refuse(key, value, "a list of texts") for i in items)

    def counts(self, key: str) -> tuple[int, ...]:
        value = self._take(key)
        numbers: list[int] = []
        for item in self._list(key, value, "a list of whole numbers"):
            if isinstance(item, bool) or not isinstance(item, int) or item < 0:
                self._refuse(key, value, "a list of whole numbers of at least 0")
            numbers.append(item)
        return tuple(numbers)

    def table(self, key: str) -> Fields:
        return self._inner(key, self._take(key), f"{self.where}: {key}")

    def optional_table(self, key: str) -> Fields | None:
        return self.table(key) if key in self._left else None

    def tables(self, key: str) -> Iterator[Fields]:
        """An array of tables, possibly of none. Each is known by its name, where it has one."""
        value = self._left.pop(key, [])
        for index, item in enumerate(self._list(key, value, f"tables [[{key}]]")):
            inner = self._inner(key, item, f"{self.where}: {key} {index}")
            named = inner._left.get("name")
            if isinstance(named, str):
                inner.where = f"{self.where}: {key} {named!r}"
            yield inner

    def finish(self) -> None:
        if self._left:
            raise PenstockError(
                code=self._code, what=f"unknown field {', '.join(map(repr, sorted(self._left)))}",
                where=self.where, hint="remove it or correct its spelling",
            )  # fmt: skip

    def _inner(self, key: str, value: object, where: str) -> Fields:
        if not isinstance(value, dict):
            self._refuse(key, value, "a table")
        return Fields(cast("dict[str, object]", value), where, self._code)

    def _list(self, key: str, value: object, wanted: str) -> list[object]:
        return cast("list[object]", value) if isinstance(value, list) else self._refuse(key, value, wanted)

    def _take(self, key: str) -> object:
        if key not in self._left:
            raise PenstockError(
                code=self._code, what=f"field {key!r} is missing", where=self.where, hint=f"add {key} = ..."
            )
        return self._left.pop(key)

    def _refuse(self, key: str, value: object, wanted: str) -> NoReturn:
        raise PenstockError(
            code=self._code, what=f"field {key!r} is {value!r}", where=self.where,
            limit=f"it must be {wanted}", hint="correct the file",
        )  # fmt: skip
