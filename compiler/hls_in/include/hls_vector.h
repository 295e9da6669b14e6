// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace hls {
template <typename _AP_T, unsigned long _AP_N> struct vector {
    vector();
    vector(_AP_T value);
    _AP_T &operator[](int index);
    const _AP_T &operator[](int index) const;
    vector &operator+=(const vector &other);
    vector &operator-=(const vector &other);
    vector &operator*=(const vector &other);
    vector &operator/=(const vector &other);
    friend vector operator+(const vector &left, const vector &right) { return left; }
    friend vector operator-(const vector &left, const vector &right) { return left; }
    friend vector operator*(const vector &left, const vector &right) { return left; }
    friend vector operator/(const vector &left, const vector &right) { return left; }
};
}
