// A small subset of hls::stream for C simulation: an unbounded queue, as the C simulation of Vitis has.
// Written for Penstock; Vitis' own header can be used in its place.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_HLS_STREAM_H
#define PENSTOCK_CSIM_HLS_STREAM_H

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

namespace hls {

template <typename T, int DEPTH = 0> class stream {
    std::deque<T> queue_;
    std::string name_;
    stream(const stream &);
    stream &operator=(const stream &);

public:
    explicit stream(const char *name = "stream") : name_(name) {}
    ~stream() {
        if (!queue_.empty())
            std::fprintf(stderr, "warning: stream '%s' ends with %lu tokens unread\n", name_.c_str(),
                         (unsigned long)queue_.size());
    }
    void write(const T &value) { queue_.push_back(value); }
    T read() {
        if (queue_.empty()) {
            std::fprintf(stderr, "error: read from empty stream '%s'\n", name_.c_str());
            std::abort();
        }
        T value = queue_.front();
        queue_.pop_front();
        return value;
    }
    void read(T &value) { value = read(); }
    bool empty() const { return queue_.empty(); }
    bool full() const { return false; }
    std::size_t size() const { return queue_.size(); }
    stream &operator<<(const T &value) { write(value); return *this; }
    stream &operator>>(T &value) { value = read(); return *this; }
};

}  // namespace hls

#endif  // PENSTOCK_CSIM_HLS_STREAM_H
