"""The host runtime inside the library: shapes, types, batches, backends, the compiler's cache."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.arrays import Array
from penstock.compiler.package import PackageContents, write_folder
from penstock.compiler.package.contents import RUNTIME
from penstock.compiler.runtime.penstock_runtime import Accelerator, PackageError, load
from tests.package import hand_made


@pytest.fixture(scope="module")
def accelerator(built: Path) -> Accelerator:
    return load(built)


@pytest.fixture(scope="module")
def rows() -> Array:
    return np.random.default_rng(11).uniform(-20, 20, (7, 16)).astype(np.float32)


def test_answers_are_the_accelerators_dequantised(accelerator: Accelerator, rows: Array) -> None:
    answer = accelerator.run(rows[:1])
    assert answer.dtype == np.float32
    np.testing.assert_array_equal(answer, hand_made.answers(rows[:1]))


def test_one_example_needs_no_leading_dimension(accelerator: Accelerator, rows: Array) -> None:
    np.testing.assert_array_equal(accelerator.run(rows[3]), accelerator.run(rows[3:4])[0])


def test_rows_go_through_an_accelerator_of_batch_one(accelerator: Accelerator, rows: Array) -> None:
    np.testing.assert_array_equal(accelerator.run(rows), hand_made.answers(rows))
    assert accelerator.run(rows[:0]).shape == (0, 4)
    assert accelerator.run(rows[:0, np.newaxis]).shape == (0, 1, 4)


def test_whole_inputs_may_be_stacked(accelerator: Accelerator, rows: Array) -> None:
    stacked = rows[:, np.newaxis]
    np.testing.assert_array_equal(accelerator.run(stacked), hand_made.answers(rows)[:, np.newaxis])
    np.testing.assert_array_equal(accelerator.run_rows(stacked), hand_made.answers(rows)[:, np.newaxis])


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "bool"])
def test_any_real_number_type_is_taken(accelerator: Accelerator, dtype: str) -> None:
    values = np.arange(16).reshape(1, 16).astype(dtype)
    np.testing.assert_array_equal(accelerator.run(values), hand_made.answers(values.astype(np.float32)))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.zeros((1, 17), np.float32), r"shape \(1, 17\).*built for \(1, 16\).*\(N, \*\(16,\)\)"),
        (np.zeros((4, 4), np.float32), r"reshape"),
        (np.zeros((2, 2, 16), np.float32), r"shape \(2, 2, 16\)"),
        (np.zeros((3, 2, 1, 16), np.float32), r"shape \(3, 2, 1, 16\)"),
        (np.float32(1), r"shape \(\)"),
        (np.array(["a"] * 16), "pass real numbers"),
        (np.zeros((1, 16), np.complex64), "pass real numbers"),
        (np.full((1, 16), np.nan, np.float32), "NaN"),
        (np.full((1, 16), np.inf, np.float32), "infinity"),
        (None, "pass real numbers"),
    ],
)
def test_what_does_not_fit_is_said(accelerator: Accelerator, value: object, says: str) -> None:
    with pytest.raises(PackageError, match=says):
        accelerator.run(value)


def test_wrong_number_of_inputs_is_said(accelerator: Accelerator) -> None:
    with pytest.raises(PackageError, match=r"2 inputs given, the model takes 1 - pass x"):
        accelerator.run(np.zeros((1, 16)), np.zeros((1, 16)))


def test_unknown_backend_names_the_known_ones(built: Path) -> None:
    with pytest.raises(PackageError, match=r"'gpu'.*choose one of: emulation"):
        load(built, backend="gpu")


def test_batch_above_one_is_never_split_in_silence(tmp_path: Path, rows: Array) -> None:
    write_folder(_batched_contents(tmp_path), tmp_path / "package")
    with load(tmp_path / "package") as batched:
        np.testing.assert_array_equal(batched.run(rows[:4]), hand_made.answers(rows[:4]))
        with pytest.raises(PackageError, match=r"run_rows\(x\)"):
            batched.run(rows)
        np.testing.assert_array_equal(batched.run_rows(rows), hand_made.answers(rows))
        with pytest.raises(PackageError, match="no rows"):
            batched.run_rows(rows[:0])


def test_tampered_package_is_not_loaded(package: Path) -> None:
    source = package / "hls" / "penstock_top.cpp"
    source.write_text(source.read_text().replace("sum +=", "sum -="))
    with pytest.raises(PackageError, match=r"hls/penstock_top\.cpp: changed"):
        load(package)
    assert not (package / ".cache").exists(), "nothing was compiled"
    with load(package, check=False) as changed:
        assert not np.array_equal(changed.run(np.ones(16)), hand_made.answers(np.ones((1, 16)))[0])


def test_library_is_compiled_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(package).close()
    (library,) = (package / ".cache").iterdir()
    before = library.stat().st_mtime_ns
    load(package).close()
    assert library.stat().st_mtime_ns == before
    assert list((package / ".cache").iterdir()) == [library]


def test_without_a_compiler_the_error_says_what_to_install(
    package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(PackageError, match=r"no C\+\+ compiler was found.*install g\+\+"):
        load(package)


def test_source_that_does_not_compile_names_the_first_error(package: Path) -> None:
    source = package / "hls" / "penstock_top.cpp"
    source.write_text("void penstock_top( {\n")
    with pytest.raises(PackageError, match=r"penstock_top\.cpp:1:.*error"):
        load(package, check=False)
    assert list((package / ".cache").iterdir()) == []


def test_archive_is_run_without_unpacking_it(archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with load(archive) as accelerator:
        assert accelerator.run(np.zeros(16)).shape == (4,)
    left = [p for p in tmp_path.iterdir() if not p.name.startswith("penstock-cache-")]
    assert left == []
    for folder in tmp_path.iterdir():
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_cache_that_others_can_write_is_not_trusted(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shared = tmp_path / f"penstock-cache-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    load(archive).close()
    assert list(shared.iterdir()) == []


def test_emulated_accelerator_that_fails_is_an_error(package: Path) -> None:
    main = package / "csim" / "csim_main.cpp"
    main.write_text(main.read_text().replace("return 0;", "return 3;"))
    with load(package, check=False) as broken, pytest.raises(PackageError, match="status 3"):
        broken.run(np.zeros(16))


def test_truncated_parameters_are_an_error(package: Path) -> None:
    (package / "parameters" / "bias.bin").write_bytes(b"\0" * 8)
    with pytest.raises(PackageError, match=r"bias\.bin holds 2 values"):
        load(package, check=False)


@pytest.mark.parametrize("path", sorted(p.relative_to(RUNTIME) for p in RUNTIME.rglob("*.py")), ids=str)
def test_runtime_is_python_3_9_and_imports_only_numpy(path: Path) -> None:
    tree = ast.parse((RUNTIME / path).read_text(), feature_version=(3, 9))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add((node.module or "").split(".")[0])
    own = {
        "__future__", "argparse", "ast", "collections", "ctypes", "dataclasses", "errno", "hashlib", "importlib",
        "json", "math", "numpy", "os", "pathlib", "penstock_runtime", "re", "select", "selectors", "shutil", "stat",
        "struct", "subprocess", "sys", "tempfile", "termios", "threading", "time", "types", "typing", "xml",
        "zipfile", "zlib",
    }  # fmt: skip
    # torch only where a package needs it, and then not before a package is opened
    assert imported <= own | ({"torch"} if path.name == "host.py" else set())
    at_the_top = [node for node in tree.body if isinstance(node, ast.Import)]
    assert all(alias.name != "torch" for node in at_the_top for alias in node.names)


def _batched_contents(tmp_path: Path) -> PackageContents:
    """The hand-made layer for four rows at once."""
    return hand_made.contents(tmp_path / "emitted", batch=4)
