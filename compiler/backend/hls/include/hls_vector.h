// A small subset of hls::vector for C simulation: what one token of a stream or one word of memory carries.
// A plain aggregate of N elements, aligned as Vitis aligns it. Written for Penstock; Vitis' own header can be used.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_HLS_VECTOR_H
#define PENSTOCK_CSIM_HLS_VECTOR_H

#include <array>
#include <cstddef>

namespace hls {

// The largest power of two that divides a number of bytes.
constexpr std::size_t penstock_alignment(std::size_t bytes) { return bytes & (~bytes + 1); }

template <typename T, std::size_t N> struct alignas(penstock_alignment(sizeof(T) * N)) vector {
    static_assert(N > 0, "a vector has at least one lane");
    std::array<T, N> lanes;
    T &operator[](std::size_t i) { return lanes[i]; }
    const T &operator[](std::size_t i) const { return lanes[i]; }
};

}  // namespace hls

#endif  // PENSTOCK_CSIM_HLS_VECTOR_H
