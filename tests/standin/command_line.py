"""Command lines and configuration files as the tools take them, with their words for what they do not know."""

from __future__ import annotations

from tests.standin import tables


class Unknown(Exception):
    """Something that the release does not know; the message is what it prints."""


def parse(words: list[str], options: tables.Options, release: tables.Release, program: str):
    """(option -> its values, other words). `--name=value`, `--name value` and `-Ovalue` are one."""
    given: dict[str, list[str]] = {}
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, joined, value = word.partition("=")
        if name not in options and not word.startswith("--") and len(word) > 2 and word[:2] in options:
            name, joined, value = word[:2], "=", word[2:]
        option = options.get(name)
        if option is None or not tables.takes(option, release):
            raise Unknown(
                f"ERROR: [{program} 60-1520] ***Exception: unrecognised option '{name}' \n"
                f"Usage: {program} [options] <input file...>\nTry {program} --help"
            )
        if option[0] and not joined:
            if at == len(words):
                raise Unknown(
                    f"ERROR: [{program} 60-1520] ***Exception: the required argument for option '{name}' is missing"
                )
            value = words[at]
            at += 1
        given.setdefault(name, []).append(value)
    return given, rest


def read_config(path: str, program: str) -> list[tuple[str, str, str]]:
    """(section, key, value) of every line."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        raise Unknown(f"ERROR: [{program} 60-1522] can not read config file: {path}") from None
    found: list[tuple[str, str, str]] = []
    section = ""
    for line in lines:
        text = line.split("#", 1)[0].strip()
        if text.startswith("[") and text.endswith("]"):
            section = text[1:-1]
        elif "=" in text:
            key, _, value = text.partition("=")
            found.append((section, key.strip(), value.strip()))
        elif text:
            raise Unknown(
                f"ERROR: [{program} 60-1520] ***Exception: the options configuration file contains an invalid line "
                f"'{text}'"
            )
    return found
