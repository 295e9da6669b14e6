// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
template <int W> struct ap_int {
    ap_int();
    template <typename T> ap_int(T value);
    template <typename T> ap_int &operator=(T value);
    template <typename T> ap_int &operator+=(const T &value);
    template <typename T> ap_int &operator-=(const T &value);
    template <typename T> ap_int &operator*=(const T &value);
    template <typename T> ap_int &operator/=(const T &value);
    template <typename T> ap_int &operator%=(const T &value);
    template <typename T> ap_int &operator&=(const T &value);
    template <typename T> ap_int &operator|=(const T &value);
    template <typename T> ap_int &operator^=(const T &value);
    template <typename T> ap_int &operator<<=(const T &value);
    template <typename T> ap_int &operator>>=(const T &value);
    ap_int &operator++();
    ap_int &operator--();
    ap_int operator++(int);
    ap_int operator--(int);
    operator long long() const;
    long long range(int high, int low) const;
};
template <int W> struct ap_uint {
    ap_uint();
    template <typename T> ap_uint(T value);
    template <typename T> ap_uint &operator=(T value);
    template <typename T> ap_uint &operator+=(const T &value);
    template <typename T> ap_uint &operator-=(const T &value);
    template <typename T> ap_uint &operator*=(const T &value);
    template <typename T> ap_uint &operator/=(const T &value);
    template <typename T> ap_uint &operator%=(const T &value);
    template <typename T> ap_uint &operator&=(const T &value);
    template <typename T> ap_uint &operator|=(const T &value);
    template <typename T> ap_uint &operator^=(const T &value);
    template <typename T> ap_uint &operator<<=(const T &value);
    template <typename T> ap_uint &operator>>=(const T &value);
    ap_uint &operator++();
    ap_uint &operator--();
    ap_uint operator++(int);
    ap_uint operator--(int);
    operator unsigned long long() const;
    unsigned long long range(int high, int low) const;
};
