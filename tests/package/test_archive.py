"""The archive: the same bytes for the same contents, a manifest that vouches for all, safe unpacking."""

from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.package import PackageContents, check_folder, file_name, write_archive, write_folder
from penstock.compiler.package.render import render_bitstream_note
from penstock.compiler.package.report import BitstreamInfo, ChipUse
from penstock.compiler.package.sections import platform_section
from penstock.compiler.platforms import load_platform
from penstock.compiler.runtime.penstock_runtime import PackageError, open_package
from penstock.compiler.runtime.penstock_runtime.package import is_safe_path, unpack
from tests.package import hand_made


def test_the_same_contents_give_the_same_bytes(contents: PackageContents, tmp_path: Path) -> None:
    again = hand_made.contents(tmp_path / "emitted")
    assert again == contents
    first = write_archive(contents, tmp_path / "a")
    second = write_archive(again, tmp_path / "b")
    assert first.name == second.name == f"hand-made-{contents.digest[:12]}.penstock.zip"
    assert first.read_bytes() == second.read_bytes()


def test_without_memory_nothing_is_half_written(
    contents: PackageContents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def write(_: zipfile.ZipFile, entry: zipfile.ZipInfo, *__: object, **___: object) -> None:
        written.append(entry.filename)
        if len(written) == 3:
            raise MemoryError

    monkeypatch.setattr(zipfile.ZipFile, "writestr", write)
    with pytest.raises(MemoryError):
        write_archive(contents, tmp_path / "a")
    assert len(written) == 3
    assert not list((tmp_path / "a").iterdir())


def test_a_changed_weight_gives_another_digest(contents: PackageContents, tmp_path: Path) -> None:
    hand_made.write_emitted(tmp_path)
    header = tmp_path / "hls" / "weights.h"
    header.write_text(header.read_text() + "// changed\n")
    model = hand_made.program()
    other = hand_made.collect(model, tmp_path)
    assert other.digest != contents.digest


def test_archive_entries_are_sorted_plain_and_undated(archive: Path) -> None:
    with zipfile.ZipFile(archive) as source:
        infos = source.infolist()
    assert [i.filename for i in infos] == sorted(i.filename for i in infos)
    assert {i.date_time for i in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {stat.S_IFMT(i.external_attr >> 16) for i in infos} == {stat.S_IFREG}
    assert all(is_safe_path(i.filename) for i in infos)


def test_manifest_vouches_for_every_file(contents: PackageContents) -> None:
    manifest = json.loads(contents.files["manifest.json"])
    assert {e["path"] for e in manifest["files"]} == set(contents.files) - {"manifest.json"}
    for entry in manifest["files"]:
        data = contents.files[entry["path"]]
        assert entry["size"] == len(data)
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
    assert manifest["evidence"] == {
        "verify.csim": "simulated", "verify.pytorch": "simulated", "timing": "modelled",
        "resources": "modelled", "accuracy": "simulated",
    }  # fmt: skip
    assert manifest["design"]["digest"] == hand_made.design().digest()
    assert len(manifest["model"]["digest"]) == 64
    assert manifest["tools"] == {"g++": "test"}


def test_package_says_why_there_is_no_bitstream(contents: PackageContents) -> None:
    note = contents.files["bitstream/README.md"].decode()
    assert "no bitstream in this package" in note
    assert "xczu7ev" in note
    assert not [p for p in contents.files if p.startswith("bitstream/") and not p.endswith("README.md")]


def test_a_chip_of_another_vendor_is_not_sent_to_the_hls_tool() -> None:
    made = hand_made.report(hand_made.program())
    assert "vitis_hls" in render_bitstream_note(made)
    lattice = made.model_copy(update={"platform": platform_section(load_platform("ecp5-85k"))})
    note = render_bitstream_note(lattice)
    assert "nextpnr" in note
    assert "vitis_hls" not in note


def test_bitstream_takes_its_slot(tmp_path: Path) -> None:
    hand_made.write_emitted(tmp_path)
    made = BitstreamInfo(
        board="ulx3s-85f", part="LFE5U-85F", clock_mhz=100.0, path="bitstream/ulx3s-85f.bit", fmax_mhz=104.25,
        usage=(ChipUse(resource="DP16KD", used=7, available=208),), evidence="implemented",
    )  # fmt: skip
    contents = hand_made.collect(hand_made.program(), tmp_path, made)
    assert contents.files["bitstream/ulx3s-85f.bit"] == b"\x01\x02"
    note = contents.files["bitstream/README.md"].decode()
    for word in ("ulx3s-85f.bit", "100 MHz", "104.2 MHz [implemented]", "| DP16KD | 7 | 208 |"):
        assert word in note
    assert json.loads(contents.files["manifest.json"])["evidence"]["bitstream"] == "implemented"


def test_a_bitstream_that_failed_says_why(tmp_path: Path) -> None:
    hand_made.write_emitted(tmp_path)
    failed = BitstreamInfo(
        board="ulx3s-85f", part="LFE5U-85F", clock_mhz=100.0, path=None, failure="the design misses its clock"
    )
    contents = hand_made.collect(hand_made.program(), tmp_path, failed)
    assert "misses its clock" in contents.files["bitstream/README.md"].decode()
    assert "misses its clock" in contents.files["report.html"].decode()
    assert "bitstream" not in json.loads(contents.files["manifest.json"])["evidence"]


def test_emitted_folder_without_interface_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"interface\.json"):
        hand_made.collect(hand_made.program(), tmp_path)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("digits mlp", "digits-mlp"), ("../../x", "x"), ("äöü", "model"), ("a" * 200, "a" * 60)],
)
def test_names_become_file_names(name: str, kept: str) -> None:
    assert file_name(name) == kept


def test_unpacked_archive_is_whole(archive: Path) -> None:
    with open_package(archive) as package:
        assert package.problems() == []
        root = package.root
        assert (root / "run.py").is_file()
    assert not root.exists(), "the temporary folder is removed"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("hls/weights.h", "changed"),
        ("parameters/bias.bin", "changed"),
        ("penstock_runtime/ports.py", "changed"),
    ],
)
def test_tampering_is_found(package: Path, path: str, problem: str) -> None:
    data = bytearray((package / path).read_bytes())
    data[0] ^= 1
    (package / path).write_bytes(bytes(data))
    found = open_package(package).problems()
    assert found == [f"{path}: {problem} since the package was built"]


def test_missing_file_is_found(package: Path) -> None:
    (package / "design.json").unlink()
    assert open_package(package).problems() == ["design.json: missing"]


def test_changed_manifest_is_found(package: Path) -> None:
    path = package / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["evidence"]["timing"] = "board"
    path.write_text(json.dumps(manifest))
    assert open_package(package).problems() == ["manifest.json: changed since the package was built"]


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil", "a/../../evil", "c:/evil", "a\\..\\evil"])
def test_archive_that_would_leave_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "evil.penstock.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(PackageError, match="leave the folder"):
        unpack(path, tmp_path / "inner")
    assert not list(tmp_path.rglob("evil*.py"))


def test_archive_with_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "link.zip"
    entry = zipfile.ZipInfo("hls/link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, "/etc")
    with pytest.raises(PackageError, match="leave the folder"):
        unpack(path, tmp_path / "inner")


def test_manifest_that_points_outside_is_refused(package: Path) -> None:
    path = package / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"][0]["path"] = "../../outside"
    path.write_text(json.dumps(manifest))
    with pytest.raises(PackageError, match="not a manifest"):
        open_package(package)


@pytest.mark.parametrize("size", [0, 10, 1000, 3000])
def test_damaged_archive_is_one_clear_error(archive: Path, tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.penstock.zip"
    path.write_bytes(archive.read_bytes()[:size])
    with pytest.raises(PackageError, match=r"neither a folder nor an archive|damaged"):
        open_package(path)


def test_an_archive_that_says_it_is_encrypted_is_one_clear_error(archive: Path, tmp_path: Path) -> None:
    """Python's own reader asks for a password then, by an error of no kind of its own."""
    content = bytearray(archive.read_bytes())
    first = content.index(b"PK\x01\x02")
    content[first + 8] |= 1
    (path := tmp_path / "encrypted.zip").write_bytes(content)
    with pytest.raises(PackageError, match="encrypted"):
        open_package(path)


def test_archive_with_damaged_data_is_one_clear_error(archive: Path, tmp_path: Path) -> None:
    data = bytearray(archive.read_bytes())
    data[200:400] = bytes(200)
    path = tmp_path / "bent.penstock.zip"
    path.write_bytes(bytes(data))
    with pytest.raises(PackageError, match="damaged"):
        open_package(path)


def test_output_folder_keeps_other_files(tmp_path: Path, contents: PackageContents) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(PenstockError, match="holds other files"):
        write_folder(contents, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(PenstockError, match="file of that name"):
        check_folder(tmp_path / "thesis.tex")


def test_output_folder_replaces_an_older_package(package: Path, contents: PackageContents) -> None:
    old = write_archive(contents, package)
    (package / "hls" / "notes.txt").write_text("mine")
    (package / "hls" / "penstock_top.cpp").unlink()
    write_folder(contents, package)
    assert not old.exists()
    assert open_package(package).problems() == []
    assert (package / "hls" / "notes.txt").read_text() == "mine"
