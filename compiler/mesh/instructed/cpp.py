"""An array as C++: one function for each kind of engine, a top that wires them, and a program that runs it."""

from __future__ import annotations

from importlib.resources import files

from penstock.compiler.mesh.instructed.array import LEVELS, CoreArray


def cpp_files(array: CoreArray) -> dict[str, str]:
    """By name; all of them, with the header of streams that Vitis' own may replace."""
    own = files("penstock.compiler.mesh.instructed.include")
    streams = files("penstock.compiler.backend.hls.include").joinpath("hls_stream.h").read_text()
    return {
        "penstock_array.h": own.joinpath("penstock_array.h").read_text(),
        "penstock_array_sizes.h": _sizes(array),
        "penstock_array.cpp": _top(array),
        "main.cpp": _main(array),
        "csim/hls_stream.h": streams,
    }


def memories(array: CoreArray) -> list[tuple[str, bool]]:
    """The memory arguments, in their order, and which of them are written."""
    found: list[tuple[str, bool]] = []
    for channel in array.used_channels:
        readers, writers = array.clients(channel)
        found += [(f"in_{channel}", False)] if readers else []
        found += [(f"out_{channel}", True)] if writers else []
    return found


def _sizes(array: CoreArray) -> str:
    sizes = {
        "ROWS": array.rows, "COLUMNS": array.columns, "TALL": array.tall, "WIDE": array.wide, "DEEP": array.deep,
        "WORD": array.word, "LEFT": array.left, "RIGHT": array.right, "SUMS": array.sums, "LEVELS": LEVELS,
        "SLOTS": array.body,
    }  # fmt: skip
    lines = "\n".join(f"const int {name} = {value};" for name, value in sizes.items())
    return (
        f"// {array.text()}.\n#ifndef PENSTOCK_ARRAY_SIZES_H\n#define PENSTOCK_ARRAY_SIZES_H\n"
        f"namespace penstock_array {{\n{lines}\n}}\n#endif\n"
    )


def _top(array: CoreArray) -> str:
    arguments = [f"{'' if written else 'const '}word_t *{name}" for name, written in memories(array)]
    depths = "".join(f"#pragma HLS interface m_axi port={name} bundle=channel_{name}\n" for name, _ in memories(array))
    reads = [f"    reader(own.rows[{r}], in_{array.channel_of(r)}, left[{r}][0]);" for r in range(array.rows)]
    reads += [
        f"    reader(own.columns[{c}], in_{array.channel_of(array.rows + c)}, right[0][{c}]);"
        for c in range(array.columns)
    ]
    writes = [
        f"    writer(own.writers[{c}], out[ROWS][{c}], out_{array.channel_of(array.readers + c)});"
        for c in range(array.columns)
    ]
    names = ", ".join(name for name, _ in memories(array))
    parameters = f"{', '.join(arguments)}, const programs_t &own"
    return f"""// {array.text()}: the same for every program.
#include "penstock_array.h"

namespace penstock_array {{

static void run({parameters}) {{
#pragma HLS dataflow
    static link_t left[ROWS][COLUMNS + 1], right[ROWS + 1][COLUMNS], out[ROWS + 1][COLUMNS];
    static link_t own_left[ROWS][COLUMNS], own_right[ROWS][COLUMNS], sums[ROWS][COLUMNS];
#pragma HLS stream variable=left depth=2
#pragma HLS stream variable=right depth=2
#pragma HLS stream variable=out depth=4
#pragma HLS stream variable=own_left depth={array.left}
#pragma HLS stream variable=own_right depth={array.right}
#pragma HLS stream variable=sums depth={array.sums * array.parts}
{chr(10).join(reads)}
    for (int r = 0; r < ROWS; ++r) {{
#pragma HLS unroll
        for (int c = 0; c < COLUMNS; ++c) {{
#pragma HLS unroll
            mover(own.left[r][c], left[r][c], own_left[r][c], left[r][c + 1]);
            mover(own.right[r][c], right[r][c], own_right[r][c], right[r + 1][c]);
            mac(own.mac[r][c], own.left[r][c], own.right[r][c], own_left[r][c], own_right[r][c], sums[r][c]);
            drain(own.out[r][c], sums[r][c], out[r][c], out[r + 1][c]);
        }}
    }}
{chr(10).join(writes)}
}}

}}  // namespace penstock_array

extern "C" void penstock_array_top(
    {", ".join(a.replace("word_t", "penstock_array::word_t") for a in arguments)}, const uint64_t *load, int tokens
) {{
{depths}#pragma HLS interface m_axi port=load bundle=load
    static penstock_array::programs_t own;
    penstock_array::load_programs(load, tokens, own);
    penstock_array::run({names}, own);
}}
"""


def _main(array: CoreArray) -> str:
    every = memories(array)
    reads = [
        f"    std::vector<word_t> {name} = {f'zeros(argv[{at + 2}])' if written else f'words<word_t>(argv[{at + 2}])'};"
        for at, (name, written) in enumerate(every)
    ]
    pointers = ", ".join(f"{name}.data()" for name, _ in every)
    arguments = ", ".join(f"{'' if written else 'const '}penstock_array::word_t *" for _, written in every)
    saves = [f'    save("{name}.bin", {name});' for name, written in every if written]
    return f"""// Runs a program: its tokens, then for every memory the file that fills it, or how many words it has.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "penstock_array.h"

extern "C" void penstock_array_top({arguments}, const uint64_t *load, int tokens);

typedef penstock_array::word_t word_t;

template <typename T> static std::vector<T> words(const char *name) {{
    std::ifstream file(name, std::ios::binary);
    if (!file) std::fprintf(stderr, "cannot read %s\\n", name), std::exit(2);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<T> found(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < found.size() * sizeof(T); ++i) reinterpret_cast<char *>(found.data())[i] = bytes[i];
    return found;
}}

static std::vector<word_t> zeros(const char *count) {{ return std::vector<word_t>(std::strtoul(count, nullptr, 10)); }}

static void save(const char *name, const std::vector<word_t> &from) {{
    std::ofstream file(name, std::ios::binary);
    file.write(reinterpret_cast<const char *>(from.data()), static_cast<std::streamsize>(from.size() * sizeof(word_t)));
}}

int main(int argc, char **argv) {{
    if (argc != {len(every) + 2}) return 2;
    const std::vector<uint64_t> load = words<uint64_t>(argv[1]);
{chr(10).join(reads)}
    penstock_array_top({pointers}, load.data(), static_cast<int>(load.size()));
{chr(10).join(saves)}
    return 0;
}}
"""
