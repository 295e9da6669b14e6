// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace hls {
template <typename T, unsigned long N> struct vector {
    vector();
    vector(T value);
    T &operator[](int index);
    const T &operator[](int index) const;
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
