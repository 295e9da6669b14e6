// Scalar operations with one meaning on every compiler: integers wrap, NaN propagates where it says so.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_OPS_H
#define PENSTOCK_OPS_H

#include <cmath>
#include <cstdint>

#include "ap_int.h"
#ifdef __SYNTHESIS__
#include "hls_math.h"
#endif

namespace pk {

// Of a number type: its unsigned twin, and the narrowest unsigned type that C++ does not promote to a signed one.
template <typename T> struct bits;
template <> struct bits<bool> { typedef uint8_t type; typedef uint32_t modular; static const int width = 1; };
template <> struct bits<int8_t> { typedef uint8_t type; typedef uint32_t modular; static const int width = 8; };
template <> struct bits<int16_t> { typedef uint16_t type; typedef uint32_t modular; static const int width = 16; };
template <> struct bits<int32_t> { typedef uint32_t type; typedef uint32_t modular; static const int width = 32; };
template <> struct bits<int64_t> { typedef uint64_t type; typedef uint64_t modular; static const int width = 64; };
template <int W> struct bits<ap_int<W> > {
    typedef ap_uint<W> type;
    typedef ap_uint<W> modular;
    static const int width = W;
};

// Two's complement arithmetic through the unsigned twin. It is as wide as the type, not wider: an operation that has to
// be found behind a truncation is one that the tool cannot bind.
template <typename T> inline uint64_t raw(T x) { return (uint64_t)(typename bits<T>::type)x; }
template <typename T, typename X> inline T wrap(X x) { return (T)(typename bits<T>::type)x; }
template <typename T> inline typename bits<T>::modular modular(T x) { return (typename bits<T>::modular)x; }
template <typename T> inline T add(T a, T b) { return wrap<T>(modular(a) + modular(b)); }
template <typename T> inline T sub(T a, T b) { return wrap<T>(modular(a) - modular(b)); }
template <typename T> inline T mul(T a, T b) { return wrap<T>(modular(a) * modular(b)); }

// first * common and second * common by one multiplier. 18 bits apart in one number, two factors of 8 bits are one of 26,
// and a DSP slice multiplies 27 bits by 18; what the lower product borrows of the upper one is given back.
template <typename T, typename A, typename B> inline void two_products(A first, A second, B common, T &one, T &other) {
#pragma HLS INLINE
    const ap_int<27> both = (int32_t)first * (1 << 18) + (int32_t)second;
    const ap_int<8> factor = (int32_t)common;
    ap_int<35> product;
#pragma HLS BIND_OP variable=product op=mul impl=dsp
    product = both * factor;
    const ap_int<18> lower = product;
    const ap_int<17> upper = (product >> 18) + ((product >> 17) & 1);
    one = (T)(int64_t)upper;
    other = (T)(int64_t)lower;
}

// The same two products, added to the sums of those before them: sums of up to seven keep to their 18 bits, so that all
// of them pass from one DSP slice's adder to the next, and are taken apart once.
template <typename A, typename B, typename C> inline ap_int<48> two_more(A first, B second, C common, ap_int<48> sums) {
#pragma HLS INLINE
    const ap_int<27> both = (int32_t)first * (1 << 18) + (int32_t)second;
    const ap_int<8> factor = (int32_t)common;
    return sums + both * factor;
}
template <typename T> inline void take_apart(ap_int<48> sums, T &one, T &other) {
#pragma HLS INLINE
    const ap_int<18> lower = sums;
    const ap_int<18> upper = (sums >> 18) + ((sums >> 17) & 1);
    one = (T)(int64_t)upper;
    other = (T)(int64_t)lower;
}

// Towards zero. What divides by -1 is turned, as the smallest number divided by it wraps.
template <typename T> inline T div(T a, T b) { return b == (T)-1 ? sub((T)0, a) : (T)(a / b); }
template <typename T> inline T rem(T a, T b) { return b == (T)-1 ? (T)0 : (T)(a % b); }
template <typename T> inline T udiv(T a, T b) { return wrap<T>(raw(a) / raw(b)); }
template <typename T> inline T urem(T a, T b) { return wrap<T>(raw(a) % raw(b)); }
template <typename T> inline T shl(T a, T b) { return wrap<T>(raw(a) << (int)b); }
template <typename T> inline T lshr(T a, T b) { return wrap<T>(raw(a) >> (int)b); }
template <typename T> inline T min(T a, T b) { return a < b ? a : b; }
template <typename T> inline T max(T a, T b) { return a > b ? a : b; }
template <typename T> inline T umin(T a, T b) { return raw(a) < raw(b) ? a : b; }
template <typename T> inline T umax(T a, T b) { return raw(a) > raw(b) ? a : b; }
template <typename T> inline bool ult(T a, T b) { return raw(a) < raw(b); }
template <typename T> inline bool ule(T a, T b) { return raw(a) <= raw(b); }
template <typename T> inline bool ugt(T a, T b) { return raw(a) > raw(b); }
template <typename T> inline bool uge(T a, T b) { return raw(a) >= raw(b); }

template <typename To, typename From> inline To sext(From x) { return (To)x; }
template <typename To, typename From> inline To bitcast(From x) {  // the same bits as another type of the same size
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  union { From from; To to; } both;
  both.from = x;
  return both.to;
}
template <typename To> inline To sext(bool x) { return x ? (To)-1 : (To)0; }
template <typename To, typename From> inline To zext(From x) { return (To)raw(x); }
template <typename To> struct trunc_to {
    template <typename From> static To from(From x) { return (To)(typename bits<To>::type)raw(x); }
};
template <> struct trunc_to<bool> {
    template <typename From> static bool from(From x) { return (raw(x) & 1) != 0; }
};
template <typename To, typename From> inline To trunc(From x) { return trunc_to<To>::from(x); }

// Truncates toward zero and saturates; NaN gives 0.
template <typename To, typename From> inline To to_int(From x) {
    const double low = -std::ldexp(1.0, bits<To>::width - 1), high = std::ldexp(1.0, bits<To>::width - 1);
    if (x != x) return (To)0;
    if ((double)x <= low) return wrap<To>((uint64_t)1 << (bits<To>::width - 1));
    if ((double)x >= high) return wrap<To>(((uint64_t)1 << (bits<To>::width - 1)) - 1);
    return (To)(int64_t)x;
}

template <typename To, typename From> inline To to_uint(From x) {
    const double high = std::ldexp(1.0, bits<To>::width);
    if (!(x > 0)) return (To)0;
    return wrap<To>((double)x >= high ? ~(uint64_t)0 : (uint64_t)x);
}

template <typename T> inline bool unordered(T a, T b) { return a != a || b != b; }
template <typename T> inline T maximum(T a, T b) { return a != a ? a : (b != b ? b : (a > b ? a : b)); }
template <typename T> inline T minimum(T a, T b) { return a != a ? a : (b != b ? b : (a < b ? a : b)); }
template <typename T> inline T maxnum(T a, T b) { return a != a ? b : (b != b ? a : (a > b ? a : b)); }
template <typename T> inline T minnum(T a, T b) { return a != a ? b : (b != b ? a : (a < b ? a : b)); }

// x times 2^K. On hardware the exponent moves, and what is subnormal is zero, as in the tool's multiplier.
template <int K> inline float scale(float x) {
#ifdef __SYNTHESIS__
    union { float number; uint32_t word; } value;
    value.number = x;
    const uint32_t sign = value.word & 0x80000000u;
    const int exponent = (int)((value.word >> 23) & 0xff), moved = exponent + K;
    if (exponent == 0xff) return x;
    if (exponent == 0 || moved <= 0) value.word = sign;
    else if (moved >= 0xff) value.word = sign | 0x7f800000u;
    else value.word = (value.word & 0x807fffffu) | ((uint32_t)moved << 23);
    return value.number;
#else
    return x * std::ldexp(1.0f, K);
#endif
}

#ifdef __SYNTHESIS__
#define PENSTOCK_FUNCTION(name, hardware, exact) \
    template <typename T> inline T name(T x) { return hardware; }
#else
#define PENSTOCK_FUNCTION(name, hardware, exact) \
    template <typename T> inline T name(T x) { return exact; }
#endif
// the functions of compiler/scalars/operations.py
#undef PENSTOCK_FUNCTION

}  // namespace pk

#endif  // PENSTOCK_OPS_H
