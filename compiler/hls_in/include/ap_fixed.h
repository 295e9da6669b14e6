// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ap_int.h>
enum ap_q_mode { AP_RND, AP_RND_ZERO, AP_RND_MIN_INF, AP_RND_INF, AP_RND_CONV, AP_TRN, AP_TRN_ZERO };
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q = AP_TRN, ap_o_mode _AP_O = AP_WRAP, int _AP_N = 0> struct ap_fixed {
    ap_fixed();
    template <typename _AP_T> ap_fixed(_AP_T value);
    template <typename _AP_T> ap_fixed &operator=(_AP_T value);
    template <typename _AP_T> ap_fixed &operator+=(const _AP_T &value);
    template <typename _AP_T> ap_fixed &operator-=(const _AP_T &value);
    template <typename _AP_T> ap_fixed &operator*=(const _AP_T &value);
    template <typename _AP_T> ap_fixed &operator/=(const _AP_T &value);
    template <typename _AP_T> ap_fixed &operator<<=(const _AP_T &value);
    template <typename _AP_T> ap_fixed &operator>>=(const _AP_T &value);
    ap_fixed &operator++();
    ap_fixed &operator--();
    ap_fixed operator++(int);
    ap_fixed operator--(int);
    template <typename _AP_T> ap_fixed operator<<(const _AP_T &by) const;
    template <typename _AP_T> ap_fixed operator>>(const _AP_T &by) const;
    int to_int() const;
    float to_float() const;
    double to_double() const;
    operator double() const;
    ap_bits operator[](int at);
    const ap_bits operator[](int at) const;
    ap_bits operator()(int high, int low);
    const ap_bits operator()(int high, int low) const;
    ap_bits range(int high, int low);
    const ap_bits range(int high, int low) const;
    int length() const;
    static const int width = _AP_W;
    static const int iwidth = _AP_I;
};
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q = AP_TRN, ap_o_mode _AP_O = AP_WRAP, int _AP_N = 0> struct ap_ufixed {
    ap_ufixed();
    template <typename _AP_T> ap_ufixed(_AP_T value);
    template <typename _AP_T> ap_ufixed &operator=(_AP_T value);
    template <typename _AP_T> ap_ufixed &operator+=(const _AP_T &value);
    template <typename _AP_T> ap_ufixed &operator-=(const _AP_T &value);
    template <typename _AP_T> ap_ufixed &operator*=(const _AP_T &value);
    template <typename _AP_T> ap_ufixed &operator/=(const _AP_T &value);
    template <typename _AP_T> ap_ufixed &operator<<=(const _AP_T &value);
    template <typename _AP_T> ap_ufixed &operator>>=(const _AP_T &value);
    ap_ufixed &operator++();
    ap_ufixed &operator--();
    ap_ufixed operator++(int);
    ap_ufixed operator--(int);
    template <typename _AP_T> ap_ufixed operator<<(const _AP_T &by) const;
    template <typename _AP_T> ap_ufixed operator>>(const _AP_T &by) const;
    int to_int() const;
    float to_float() const;
    double to_double() const;
    operator double() const;
    ap_bits operator[](int at);
    const ap_bits operator[](int at) const;
    ap_bits operator()(int high, int low);
    const ap_bits operator()(int high, int low) const;
    ap_bits range(int high, int low);
    const ap_bits range(int high, int low) const;
    int length() const;
    static const int width = _AP_W;
    static const int iwidth = _AP_I;
};
