// What it does is read as the source is. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace std {
template <typename T, unsigned long N> struct array {
  typedef T value_type;
  T held[N];
  T &operator[](unsigned long at) { return held[at]; }
  const T &operator[](unsigned long at) const { return held[at]; }
  T &at(unsigned long n) { return held[n]; }
  T &front() { return held[0]; }
  T &back() { return held[N - 1]; }
  T *data() { return held; }
  constexpr unsigned long size() const { return N; }
  void fill(const T &value) {
    for (unsigned long n = 0; n < N; n++) held[n] = value;
  }
};
}
