"""Wrong programs: each is refused at its line, and says what to write instead."""

from __future__ import annotations

import pytest

from penstock.compiler.errors import PenstockError
from tests.tasks.programs import read

HEAD = """
@program
def p(A: int8[8], B: int32[8]):
    s = Stream[int8]
    t = Stream[int32][2]
"""
LOAD = """
    @task
    def load():
        for i in range(8):
            s.put(A[i])
"""
STORE = """
    @task
    def store():
        for i in range(8):
            B[i] = s.get()
"""
WRONG = {
    "puts and gets differ": (
        LOAD + STORE.replace("range(8)", "range(7)"), "puts 8 tokens into s, store gets 7", "s.put"
    ),
    "two put": (LOAD + LOAD.replace("load", "again").replace("A[i]", "1") + STORE, "s is put into by two", "s.put(1)"),
    "nobody gets": (LOAD, "s has no reader", "s.put"),
    "nobody puts": (STORE, "s has no writer", "s.get"),
    "nobody puts into one of an array": (
        LOAD.replace("s.put", "t[0].put") + STORE.replace("s.get", "t[1].get"), "t_0 has no reader", "t[0].put"
    ),
    "no such stream": (LOAD + STORE + "\n    @task\n    def more(): t[2].put(1)", "t[2] is no stream", "t[2].put"),
    "a circle": (
        LOAD + STORE + "\n    @task\n    def f():\n        t[0].put(t[1].get())\n\n    @task\n    def g():\n"
        "        t[1].put(t[0].get())",
        "tasks wait for each other for ever: f waits for t_1", "t[1].get",
    ),
    "too far": (LOAD.replace("A[i]", "A[i + 1]") + STORE, "index 0 reaches 1 to 8", "A[i + 1]"),
    "a loop without end": (
        LOAD + STORE.replace("for i in range(8)", "while True"), "rounds are not known", "while True"
    ),
    "a condition on data": (
        LOAD + "\n    @task\n    def store():\n        for i in range(8):\n            x = s.get()\n"
        "            if x > 0:\n"
        "                B[i] = x", "whether B is stored would depend on a value", "B[i] = x",
    ),
    "a put that depends on data": (
        LOAD.replace("s.put(A[i])", "if A[i] > 0:\n                s.put(A[i])") + STORE,
        "what runs would depend on a value", "s.put",
    ),
    "a get that depends on data": (
        LOAD + "\n    @task\n    def store():\n        for i in range(8):\n            x = s.get()\n"
        "            B[i] = s.get() if x > 0 else x", "which tokens are got would depend on a value", "s.get() if x",
    ),
    "a condition that is a number": (
        LOAD.replace("s.put(A[i])", "x = A[i]\n            if x:\n                x = 1\n            s.put(x)") + STORE,
        "the condition is a value of type int8", "if x",
    ),
    "more names than values": (LOAD.replace("s.put(A[i])", "x, y = A[i]") + STORE, "2 names for a value of", "x, y"),
    "a tuple by a counter": (LOAD.replace("A[i]", "(1, 2)[i]") + STORE, "an element of a tuple that", "(1, 2)[i]"),
    "too far in spite of a condition": (
        LOAD.replace("s.put(A[i])", "if i >= 1:\n                s.put(A[i - 2])") + STORE,
        "reaches -1 to 5", "A[i - 2]",
    ),
    "an import": ("\n    import os", "has no place in a program", "import os"),
    "a wrong shape": (LOAD.replace("s.put(A[i])", "s.put(A[0:4])") + STORE, "s carries int8", "s.put(A[0:4])"),
    "two meet a tensor": (
        LOAD + STORE + "\n    @task\n    def more():\n        for i in range(8):\n            B[i] = 0",
        "is met by", "def more",
    ),
    "a wrong layout": (
        "\n    @task(grid=(3,))\n    def f(p, A: int8[8] @ Layout('S0')):\n        pass",
        "cannot be cut in 3", "A: int8",
    ),
    "an unknown name": (LOAD.replace("A[i]", "a[i]") + STORE, "'a' is not defined", "a[i]"),
    "try_get": (LOAD + STORE.replace("s.get", "s.try_get"), "try_get is not supported", "s.try_get"),
    "a table that depends on data": (LOAD.replace("A[i]", "A[A[i]]") + STORE, "the index is", "A[i]"),
    "a value that chooses among too many": (
        LOAD + STORE.replace("for i", "kept: int32[300] = 0\n        for i").replace("B[i] =", "kept[s.get()] +="),
        "a value chooses among 300 places of kept", "kept[s.get()]",
    ),
    "an index that is no whole number": (
        LOAD + STORE.replace("for i", "kept: int32[9] = 0\n        for i").replace("B[i] =", "kept[float32(1)] ="),
        "the index is a value of type float32", "kept[float32",
    ),
    "two indices that are values": (
        LOAD + STORE.replace("for i", "x: int32 = 1\n        kept: int32[9, 9] = 0\n        for i")
        .replace("B[i] =", "kept[x, x] ="), "two indices are values", "kept[x, x]",
    ),
    "a stream chosen by a value": (
        LOAD + STORE.replace("B[i] = s.get()", "x = s.get()\n            t[x].put(1)"),
        "which of t is meant would depend on a value", "t[x].put",
    ),
    "a shift by more bits than there are": (LOAD.replace("A[i]", "A[i] >> -1") + STORE, "a shift by -1", "A[i] >> -1"),
    "signs without end": (LOAD.replace("A[i]", "-" * 400 + "A[i]") + STORE, "nested too deeply", "-A[i]"),
    "conditions without end": (
        LOAD.replace("s.put(A[i])", "if i == 0:\n                s.put(0)"
                     + "".join(f"\n            elif i == {k}:\n                s.put(0)" for k in range(300))) + STORE,
        "nested too deeply", "elif",
    ),
    "a list that doubles": (
        LOAD.replace("for i", "x = (1, 2)\n        " + "x = x + x\n        " * 40 + "for i") + STORE,
        "too many values in a list", "x = x + x",
    ),
    "a list of lists that doubles": (
        LOAD.replace("for i", "x = (1, 2)\n        " + "x = (x, x)\n        " * 60 + "for i") + STORE,
        "too many values in a list", "x = (x, x)",
    ),
    "two places of one name": (
        LOAD + STORE + "\n    @task(grid=(2, 2))\n    def f(i, i):\n        pass",
        "there is an argument 'i' already", "def f(i, i)",
    ),
    "a sum that begins as a number": (
        LOAD + "\n    @task\n    def store():\n        x = 0\n        for i in range(8):\n            x += s.get()\n"
        "            B[i] = x", "is a number before the loop", "x += s.get()",
    ),
    "a number that a loop changes": (
        LOAD + "\n    @task\n    def store():\n        x = 0\n        for i in range(8):\n            x = x + 1\n"
        "            B[i] = s.get() + x",
        "set in a loop without a type", "x = x + 1",
    ),
    "the most of nothing": (LOAD.replace("A[i]", "max()") + STORE, "max of nothing", "max()"),
    "a broadcast to no lanes": (
        LOAD.replace("A[i]", "broadcast(A[i], (0,))") + STORE, "a shape must be whole numbers", "(0,)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_refused_at_its_place(name: str) -> None:
    body, said, place = WRONG[name]
    with pytest.raises(PenstockError) as caught:
        read(HEAD + body)
    error = caught.value
    assert error.code == "bad-task-program"
    assert said in error.what
    line, caret = error.excerpt.splitlines()
    assert place in line
    assert caret.strip() == "^"
    assert error.hint or error.limit


NUMBERS = {
    "a loop longer than a counter": ("for i in range(1 << 40):", "a loop of 1099511627776 rounds"),
    "a range without a length": ("for i in range(-(1 << 62), 1 << 62):", "rounds"),
    "a list without a length": ("for i in range(len([1 for k in range(-(1 << 62), 1 << 62)])):", "values in a list"),
    "infinity": ("for i in range(int8(1e400)):", "no number of the language"),
    "no number": ("for i in range(int8(1e300 * 1e300)):", "no number of the language"),
    "a complex number": ("for i in range((-8) ** 0.5):", "no number of the language"),
    "more than float32 holds": ("for i in range(float32(1e300)):", "does not fit float32"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_none_are_refused_at_their_place(name: str) -> None:
    line, said = NUMBERS[name]
    with pytest.raises(PenstockError) as caught:
        read(HEAD + LOAD.replace("for i in range(8):", line) + STORE)
    assert said in caught.value.what
    assert line in caught.value.excerpt


def test_functions_that_call_others_twice_are_written_out_to_a_limit() -> None:
    chain = "".join(f"def f{k}(x):\n    return f{k + 1}(x) + f{k + 1}(x)\n\n" for k in range(25))
    with pytest.raises(PenstockError, match="too many statements") as caught:
        read(f"{chain}def f25(x):\n    return x\n" + HEAD + LOAD.replace("A[i]", "f0(A[i])") + STORE)
    assert "return f" in caught.value.excerpt


def test_puts_of_a_long_loop_are_counted_without_running_it() -> None:
    """A thousand million rounds, of which a few put."""
    test = "if i >= 50 and i < 1 << 29 and i % 100000000 == 7 and i % 3 != 1:"
    body = LOAD.replace("range(8)", "range(1 << 30)").replace("s.put(A[i])", f"{test}\n                s.put(A[0])")
    wanted = sum(i % 3 != 1 for i in range(7, 1 << 29, 100_000_000) if i >= 50)
    with pytest.raises(PenstockError, match=f"puts {wanted} tokens into s"):
        read(HEAD + body + STORE)


@pytest.mark.parametrize(
    "text",
    ["", "x = (", "@program\ndef p(", "x = 9 ** 9 ** 9", "\0", "import os", "x = [1 for i in range(10 ** 9)]",
     "@program\ndef p(A: int8[10 ** 12]): pass", "x = " + "(" * 3000, "lambda: 0", "class X: pass",
     "@program\ndef p(A: int8[4]):\n    @task(grid=(9999, 9999))\n    def f(i, j): pass"],
)  # fmt: skip
def test_what_is_no_program(text: str) -> None:
    with pytest.raises(PenstockError) as caught:
        read(text)
    assert caught.value.where
