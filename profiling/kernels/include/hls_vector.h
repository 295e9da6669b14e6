// Vectors as kernels of others use them, to run on this machine. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
namespace hls {
template <typename _AP_T, std::size_t _AP_N> class vector {
    _AP_T lanes_[_AP_N];

public:
    vector() : lanes_() {}
    vector(const _AP_T &value) {
        for (std::size_t i = 0; i < _AP_N; ++i) lanes_[i] = value;
    }
    _AP_T &operator[](std::size_t i) { return lanes_[i]; }
    const _AP_T &operator[](std::size_t i) const { return lanes_[i]; }
#define PENSTOCK_LANES(sign) \
    vector &operator sign##=(const vector &other) { \
        for (std::size_t i = 0; i < _AP_N; ++i) lanes_[i] = lanes_[i] sign other.lanes_[i]; \
        return *this; \
    } \
    friend vector operator sign(vector left, const vector &right) { return left sign##= right; }
    PENSTOCK_LANES(+)
    PENSTOCK_LANES(-)
    PENSTOCK_LANES(*)
    PENSTOCK_LANES(/)
#undef PENSTOCK_LANES
};
} // namespace hls
