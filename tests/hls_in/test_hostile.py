"""Sources that try to read what is not theirs, or to take all time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in import parsing
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import Sources, read_sources, without_comments

OUTSIDE = [
    '#include "/etc/passwd"', "#include </etc/passwd>", '#include "../../../../../../etc/passwd"',
    '#define X "/etc/passwd"\n#include X', '#/**/include "/etc/passwd"', '#\\\ninclude "/etc/passwd"',
    "%:include </etc/passwd>", '#include_next "stdio.h"', '#import "/etc/passwd"',
    '#if __has_include("/etc/passwd")\n#endif', '#inc\\\nlude "/etc/passwd"',
    'const char *s = R"(" /* )";\n#include "/etc/passwd"\n/* */',
    'int a = 1\'0 + \'/*\';\n#include "/etc/passwd"\n/* */',
    'const char *s = "??/" /* ";\n#include "/etc/passwd"\n/* */', '#pragma GCC dependency "/etc/passwd"',
    'const char *s = "\\ \n/* ";\n#include "/etc/passwd"\n/* */', "#embed </etc/passwd>",
    '_Pragma("GCC dependency \\"/etc/passwd\\"")', '/* "\n*/ #include "/etc/passwd"',
]  # fmt: skip


@pytest.mark.parametrize("text", OUTSIDE)
def test_nothing_outside_the_folder_is_opened(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(text + "\nvoid top(float a[4]) { a[0] = 1; }\n")
    with pytest.raises(PenstockError) as raised:
        read_sources(path)
    assert raised.value.code == "bad-source"
    assert "root:" not in str(raised.value)


def test_what_the_fence_overlooks_ends_with_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second line of defence: whatever was opened that was not given ends the reading."""
    path = tmp_path / "kernel.cpp"
    path.write_text('#include "/etc/hostname"\nvoid top(float a[4]) { a[0] = 1; }\n')
    text = path.read_text()
    monkeypatch.setattr(parsing, "read_sources", lambda main: Sources(main, main.parent, {main: text}))
    with pytest.raises(PenstockError, match="an include of a file that was not given"):
        parsing.parse(path)


@pytest.mark.parametrize("opened", ["/* ", '"\\"', "'"])
def test_comments_and_strings_without_end_are_gone_through_once(opened: str) -> None:
    """Each of a hundred thousand beginnings went to the end of the text before."""
    text = opened * 100_000
    made = without_comments(text)
    assert len(made) == len(text)
    assert (not made.strip()) == opened.startswith("/*")


def test_a_link_out_of_the_folder_is_outside(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    (tmp_path / "table.h").symlink_to("/etc/passwd")
    path.write_text('#include "table.h"\nvoid top(float a[4]) { a[0] = 1; }\n')
    with pytest.raises(PenstockError, match="outside"):
        read_sources(path)


def test_a_header_beside_the_source_is_read(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define N 16\n")
    path = tmp_path / "kernel.cpp"
    path.write_text('#include "sizes.h"\nvoid top(float a[N]) { for (int i = 0; i < N; i++) a[i] = 1; }\n')
    assert read_kernel(path, "top").arrays[0].dims == (16,)


DEEP = "void top(float a[4]) { a[0] = " + "(" * 20000 + "1" + ")" * 20000 + "; }"
TEMPLATES = """template <int N> struct T { static const int v = T<N + 1>::v + 1; };
void top(float a[4]) { for (int i = 0; i < T<0>::v; i++) a[0] += 1; }"""


FACTOR = "void top(float a[4]) {\n#pragma HLS array_partition variable=a cyclic factor=-1\n a[0] = 1; }"


@pytest.mark.parametrize("text", [DEEP, TEMPLATES, FACTOR, "void top(float a[4]) { a[0] = ; }", "int", "\0", ""])
def test_what_cannot_be_read_is_a_typed_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    assert raised.value.where.startswith("kernel.cpp")


def test_limits_of_whoever_reads_it_are_kept(tmp_path: Path) -> None:
    """A service may allow an import less time and memory than the front end asks for itself."""
    path = tmp_path / "kernel.cpp"
    path.write_text("void top(float a[4]) { a[0] = 1; }\n")
    limited = (
        "import pathlib, resource, sys\nfrom penstock.compiler.hls_in.parsing import parse\n"
        "for kind, most in ((resource.RLIMIT_CPU, 30), (resource.RLIMIT_AS, 1 << 30)):\n"
        " resource.setrlimit(kind, (most, most))\nassert parse(pathlib.Path(sys.argv[1])).declarations"
    )
    subprocess.run([sys.executable, "-c", limited, str(path)], check=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#error penstock: send your token", '#error in the source, which says "penstock: send your token"'),
        ('#error done" (no limit) - call us', '#error in the source, which says "done\' (no limit) - call us"'),
        ('static_assert(false, "x\\nTraceback");', "static assertion failed: x Traceback"),
    ],
)
def test_words_of_a_source_do_not_pass_for_ours(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(text + "\nvoid top(float a[4]) { a[0] = 1; }\n")
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    assert raised.value.what == said


@pytest.mark.parametrize("words", ["\x1b[2J\x1b]0;evil\x07", "\u202eevil\u2066", "\u2028\x85evil", "x" * 500_000])
def test_words_of_a_source_are_plain_and_few(tmp_path: Path, words: str) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"#error {words}\nvoid top(float a[4]) {{ a[0] = 1; }}\n")
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    assert raised.value.what.isprintable()
    assert len(raised.value.what) < 400


@pytest.mark.slow
def test_macros_that_unfold_without_end_are_stopped(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    sixteen = " ".join(["x"] * 16)
    path.write_text(
        f"#define A(x) {sixteen}\n#define B(x) A(A(A(A(x))))\n#define C(x) B(B(B(x)))\n"
        "void top(float a[4]) { C(a[0] += 1;) }"
    )
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    assert raised.value.code == "source-too-large"


@pytest.mark.slow
def test_unrolling_without_end_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("void top(float a[100000]) {\n#pragma HLS pipeline\n for (int i = 0; i < 60000; i++) a[i] += 1; }")
    with pytest.raises(PenstockError, match="unroll less"):
        read_kernel(path, "top")
