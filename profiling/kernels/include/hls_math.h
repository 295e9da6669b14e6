// hls_math.h for running a kernel with a plain compiler: a result is computed in double and rounded once, as the
// compiler's other levels do. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdlib>

#define PENSTOCK_ONCE(name)                                                                                            \
    inline float name(float x) { return (float)std::name((double)x); }                                                 \
    inline float name##f(float x) { return name(x); }                                                                  \
    inline double name(double x) { return std::name(x); }

namespace hls {
PENSTOCK_ONCE(exp)
PENSTOCK_ONCE(log)
PENSTOCK_ONCE(sqrt)
PENSTOCK_ONCE(tanh)
PENSTOCK_ONCE(sin)
PENSTOCK_ONCE(cos)
PENSTOCK_ONCE(erf)
PENSTOCK_ONCE(floor)
PENSTOCK_ONCE(ceil)
PENSTOCK_ONCE(fabs)
inline float rsqrt(float x) { return (float)(1.0 / std::sqrt((double)x)); }
inline float recip(float x) { return 1.0f / x; }
inline float pow(float x, float y) { return (float)std::pow((double)x, (double)y); }
template <class _AP_T> _AP_T max(_AP_T a, _AP_T b) { return a > b ? a : b; }
template <class _AP_T> _AP_T min(_AP_T a, _AP_T b) { return a < b ? a : b; }
template <class _AP_T> _AP_T abs(_AP_T x) { return x < 0 ? -x : x; }
} // namespace hls
#undef PENSTOCK_ONCE
