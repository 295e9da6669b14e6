// A small subset of ap_int for C simulation: signed and unsigned integers of 1 to 64 bits that wrap.
// Written for Penstock; Vitis' own header can be used in its place.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_AP_INT_H
#define PENSTOCK_CSIM_AP_INT_H

#include <cstdint>
#include <ostream>

template <int W> class ap_uint {
    static_assert(W >= 1 && W <= 64, "the C simulation header holds 1 to 64 bits");
    uint64_t value_;
    static uint64_t narrow(uint64_t x) { return W == 64 ? x : (x & ((((uint64_t)1) << (W % 64)) - 1)); }

public:
    ap_uint() : value_(0) {}
    template <typename T> ap_uint(T x) : value_(narrow((uint64_t)x)) {}
    operator uint64_t() const { return value_; }
    ap_uint &operator++() { return *this = ap_uint(value_ + 1); }
    template <typename T> ap_uint &operator+=(T x) { return *this = ap_uint(value_ + (uint64_t)x); }
    int length() const { return W; }
};

template <int W> class ap_int {
    static_assert(W >= 1 && W <= 64, "the C simulation header holds 1 to 64 bits");
    int64_t value_;
    static int64_t narrow(uint64_t x) {
        const uint64_t sign = ((uint64_t)1) << (W - 1);
        const uint64_t mask = (sign << 1) - 1;  // all ones for 64 bits
        return (int64_t)(((x & mask) ^ sign) - sign);
    }

public:
    ap_int() : value_(0) {}
    template <typename T> ap_int(T x) : value_(narrow((uint64_t)x)) {}
    operator int64_t() const { return value_; }
    ap_int &operator++() { return *this = ap_int((uint64_t)value_ + 1); }
    template <typename T> ap_int &operator+=(T x) { return *this = ap_int((uint64_t)value_ + (uint64_t)x); }
    int length() const { return W; }
};

template <int W> std::ostream &operator<<(std::ostream &out, const ap_int<W> &x) { return out << (int64_t)x; }
template <int W> std::ostream &operator<<(std::ostream &out, const ap_uint<W> &x) { return out << (uint64_t)x; }

#endif  // PENSTOCK_CSIM_AP_INT_H
