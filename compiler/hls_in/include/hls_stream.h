// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace hls {
template <typename _AP_T, int _AP_DEPTH = 0> class stream;
template <typename _AP_T> class stream<_AP_T, 0> {
public:
    stream();
    stream(const char *name);
    stream(const stream &) = delete;
    _AP_T read();
    void read(_AP_T &value);
    bool read_nb(_AP_T &value);
    void write(const _AP_T &value);
    bool write_nb(const _AP_T &value);
    bool empty();
    bool full();
    unsigned size();
    stream &operator<<(const _AP_T &value);
    stream &operator>>(_AP_T &value);
};
template <typename _AP_T, int _AP_DEPTH> class stream : public stream<_AP_T, 0> {
public:
    stream();
    stream(const char *name);
};
}
