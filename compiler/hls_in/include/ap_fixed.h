// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
enum ap_q_mode { AP_RND, AP_RND_ZERO, AP_RND_MIN_INF, AP_RND_INF, AP_RND_CONV, AP_TRN, AP_TRN_ZERO };
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };
template <int W, int I, ap_q_mode Q = AP_TRN, ap_o_mode O = AP_WRAP, int N = 0> struct ap_fixed {
    ap_fixed();
    template <typename T> ap_fixed(T value);
    template <typename T> ap_fixed &operator=(T value);
    template <typename T> ap_fixed &operator+=(const T &value);
    template <typename T> ap_fixed &operator-=(const T &value);
    template <typename T> ap_fixed &operator*=(const T &value);
    template <typename T> ap_fixed &operator/=(const T &value);
    template <typename T> ap_fixed &operator<<=(const T &value);
    template <typename T> ap_fixed &operator>>=(const T &value);
    ap_fixed &operator++();
    ap_fixed &operator--();
    ap_fixed operator++(int);
    ap_fixed operator--(int);
    template <typename T> ap_fixed operator<<(const T &by) const;
    template <typename T> ap_fixed operator>>(const T &by) const;
    int to_int() const;
    float to_float() const;
    double to_double() const;
    operator double() const;
};
template <int W, int I, ap_q_mode Q = AP_TRN, ap_o_mode O = AP_WRAP, int N = 0> struct ap_ufixed {
    ap_ufixed();
    template <typename T> ap_ufixed(T value);
    template <typename T> ap_ufixed &operator=(T value);
    template <typename T> ap_ufixed &operator+=(const T &value);
    template <typename T> ap_ufixed &operator-=(const T &value);
    template <typename T> ap_ufixed &operator*=(const T &value);
    template <typename T> ap_ufixed &operator/=(const T &value);
    template <typename T> ap_ufixed &operator<<=(const T &value);
    template <typename T> ap_ufixed &operator>>=(const T &value);
    ap_ufixed &operator++();
    ap_ufixed &operator--();
    ap_ufixed operator++(int);
    ap_ufixed operator--(int);
    template <typename T> ap_ufixed operator<<(const T &by) const;
    template <typename T> ap_ufixed operator>>(const T &by) const;
    int to_int() const;
    float to_float() const;
    double to_double() const;
    operator double() const;
};
