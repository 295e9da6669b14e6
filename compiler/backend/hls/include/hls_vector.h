// A small subset of hls::vector for C simulation: what one token of a stream carries.
// Written for Penstock; Vitis' own header can be used in its place.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_HLS_VECTOR_H
#define PENSTOCK_CSIM_HLS_VECTOR_H

#include <cstddef>

namespace hls {

template <typename T, std::size_t N> class vector {
    static_assert(N > 0, "a vector has at least one lane");
    T lanes_[N];

public:
    vector() : lanes_() {}
    vector(const T &value) {
        for (std::size_t i = 0; i < N; ++i) lanes_[i] = value;
    }
    T &operator[](std::size_t i) { return lanes_[i]; }
    const T &operator[](std::size_t i) const { return lanes_[i]; }
};

}  // namespace hls

#endif  // PENSTOCK_CSIM_HLS_VECTOR_H
