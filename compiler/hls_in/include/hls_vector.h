// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace hls {
template <typename T, unsigned long N> struct vector {
    vector();
    vector(T value);
    T &operator[](int index);
};
}
