// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace hls {
template <typename T, int DEPTH = 0> class stream;
template <typename T> class stream<T, 0> {
public:
    stream();
    stream(const char *name);
    stream(const stream &) = delete;
    T read();
    void read(T &value);
    bool read_nb(T &value);
    void write(const T &value);
    bool write_nb(const T &value);
    bool empty();
    bool full();
    unsigned size();
    stream &operator<<(const T &value);
    stream &operator>>(T &value);
};
template <typename T, int DEPTH> class stream : public stream<T, 0> {
public:
    stream();
    stream(const char *name);
};
}
