"""Compiles the package's C++ into a shared library, once: it is kept under a name made of its contents."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .errors import PackageError
from .package import Package

COMPILERS = ("g++", "c++", "clang++")
# No fused multiply-add: it rounds once where the accelerator rounds twice.
FLAGS = ("-std=c++14", "-O1", "-ffp-contract=off", "-pthread", "-shared", "-fPIC")
TIMEOUT_SECONDS = 900


def build_library(package: Package) -> Path:
    """The shared library of the package's C++: from the cache, else compiled now."""
    sources = [p for p in package.paths() if p.startswith(("hls/", "csim/")) and p.endswith(".cpp")]
    if not sources:
        raise PackageError("the package holds no C++ sources", "fetch the package again")
    compiler = find_compiler()
    paths = [path for path in package.paths() if path.startswith(("hls/", "csim/"))]
    library = cache_folder(package) / f"csim-{content_key(package, compiler, FLAGS, paths)}.so"
    if library.exists():
        return library
    # Compiled under a private name and renamed, so that two processes may do it at the same time.
    handle, partial = tempfile.mkstemp(suffix=".so", dir=library.parent)
    os.close(handle)
    try:
        _compile(compiler, package.root, sources, Path(partial))
        os.replace(partial, library)
    finally:
        Path(partial).unlink(missing_ok=True)
    return library


def find_compiler() -> str:
    """The C++ compiler to use: $CXX, else the first known one on the PATH."""
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    looked_for = wanted or ", ".join(COMPILERS)
    raise PackageError(
        f"no C++ compiler was found (looked for {looked_for})",
        "emulation needs one: install g++ (apt install g++, or xcode-select --install) or set CXX",
    )


def _compile(compiler: str, root: Path, sources: list[str], library: Path) -> None:
    command = [compiler, *FLAGS, "-I", "csim/include", "-I", "hls", *sources, "-o", str(library)]
    try:
        result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise PackageError(f"{compiler} ran longer than {TIMEOUT_SECONDS} s", "try a faster machine") from error
    except OSError as error:
        raise PackageError(f"{compiler} cannot be started ({error})", "set CXX to a working compiler") from error
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
        cause = lines[0].strip() if lines else f"exit code {result.returncode}"
        raise PackageError(f"{compiler} failed: {cause}", f"repeat it in {root}: {' '.join(command)}")


def content_key(package: Package, compiler: str, flags: Sequence[str], paths: Sequence[str]) -> str:
    """What a program depends on: the files that it is made of, the compiler and its flags."""
    digest = hashlib.sha256(" ".join((compiler, *flags, sys.platform)).encode())
    try:
        digest.update(str(os.stat(compiler).st_mtime_ns).encode())
    except OSError as error:
        raise PackageError(f"{compiler} cannot be read ({error})", "set CXX to a working compiler") from error
    for path in paths:
        digest.update(path.encode() + b"\0" + (package.root / path).read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def cache_folder(package: Package) -> Path:
    """A folder inside the package, or a private one of this user where the package cannot be written."""
    inside = package.root / ".cache"
    if not package.from_archive and _is_writable(inside):
        return inside
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    shared = Path(tempfile.gettempdir()) / f"penstock-cache-{user}"
    if _is_writable(shared) and _is_private(shared):
        return shared
    try:
        return Path(tempfile.mkdtemp(prefix="penstock-cache-"))
    except OSError as error:
        raise PackageError(
            f"no folder can be written ({error})", "free some space or set TMPDIR to a writable folder"
        ) from error


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Whether nobody else could have put a library there: temporary folders are shared by all users."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.getuid() and not folder.is_symlink() and not status.st_mode & 0o077
