"""Troubles of installations that the tools' own words do not explain: what their logs show, and what helps."""

from __future__ import annotations

import re

_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"core_revision \d{10}|bad lexical cast: source type value could not be interpreted as target"),
        "releases up to 2021.2 cannot export after 2021 without AMD's patch y2k22 (answer record 76960): install it",
    ),
    (
        re.compile(r"error while loading shared libraries: (?:libtinfo|libncurses)[\w.]*"),
        "the tool needs an older ncurses: install libtinfo5 (Debian, Ubuntu) or ncurses-compat-libs (RHEL)",
    ),
    (
        re.compile(r"error while loading shared libraries: [\w.+-]+"),
        "a library of the tool is missing: run AMD's installLibs.sh, which lies in the installation",
    ),
    (
        re.compile(r"(?:gnu/stubs-32\.h|bits/libc-header-start\.h|sys/cdefs\.h)'? (?:file not found|: No such file)"),
        "HLS compiles for 32 bits as well: install gcc-multilib and g++-multilib",
    ),
    (
        re.compile(r"locale::facet::_S_create_c_locale name not valid"),
        "the tool wants a locale that is not there: set LC_ALL=C.UTF-8 or install en_US.UTF-8",
    ),
    (
        re.compile(r"crt[1in]\.o: No such file|cannot find crt[1in]\.o|cannot find -l(?:c|m|stdc\+\+|pthread)\b"),
        "the C library's development files are missing: install libc6-dev, gcc and g++",
    ),
    (
        re.compile(r"\[Common 17-(?:179|180)\]|Fork failed|Resource temporarily unavailable"),
        "the machine refuses further processes: raise its limits (ulimit -u), or run fewer jobs at once",
    ),
)


def known_trouble(log: str) -> str:
    """What helps, if the log shows a known trouble of an installation; else nothing."""
    return next((hint for pattern, hint in _KNOWN if pattern.search(log)), "")
