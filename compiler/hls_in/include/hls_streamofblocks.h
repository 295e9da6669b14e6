// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
// A block that two tasks hand over is an array to whoever holds it; parse_statements.py sees by their names that it is one.
#pragma once
namespace hls {
template <typename Block, int _AP_DEPTH = 2> using stream_of_blocks = Block;
template <typename Block> using write_lock = Block &;
template <typename Block> using read_lock = Block &;
}
