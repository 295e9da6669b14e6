// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
template <int W> struct ap_int {
    ap_int();
    template <typename T> ap_int(T value);
    template <typename T> ap_int &operator=(T value);
    operator long long() const;
    long long range(int high, int low) const;
};
template <int W> struct ap_uint {
    ap_uint();
    template <typename T> ap_uint(T value);
    template <typename T> ap_uint &operator=(T value);
    operator unsigned long long() const;
    unsigned long long range(int high, int low) const;
};
