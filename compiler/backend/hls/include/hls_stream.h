// A small subset of hls::stream for C simulation: an unbounded queue, as the C simulation of Vitis has. As there, a read
// waits for its token where HLS_STREAM_THREAD_SAFE is defined and tasks run side by side (together.h).
// Written for Penstock; Vitis' own header can be used in its place.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_HLS_STREAM_H
#define PENSTOCK_CSIM_HLS_STREAM_H

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#ifdef HLS_STREAM_THREAD_SAFE
#include <condition_variable>
#include <mutex>
#endif

namespace hls {

#ifdef HLS_STREAM_THREAD_SAFE
// Tasks that run side by side: how many there are, and how many of them wait for a token.
class side_by_side {
    std::size_t running_ = 0;
    std::size_t waiting_ = 0;

    void check() const {
        if (running_ != 0 && waiting_ == running_) {
            std::fprintf(stderr, "error: all of %lu tasks wait for tokens of each other\n", (unsigned long)running_);
            std::fflush(stderr);
            std::_Exit(1);
        }
    }

public:
    std::mutex mutex;

    static side_by_side &all() {
        static side_by_side one;
        return one;
    }
    void begin(std::size_t tasks) {
        std::lock_guard<std::mutex> lock(mutex);
        running_ = tasks;
        waiting_ = 0;
    }
    void end() {
        std::lock_guard<std::mutex> lock(mutex);
        --running_;
        check();
    }
    // With the mutex held.
    bool runs() const { return running_ != 0; }
    void wait() {
        ++waiting_;
        check();
    }
    void go_on() { --waiting_; }
};
#endif

template <typename _AP_T, int _AP_DEPTH = 0> class stream;

template <typename _AP_T> class stream<_AP_T, 0> {
    std::deque<_AP_T> queue_;
    std::string name_;
#ifdef HLS_STREAM_THREAD_SAFE
    bool awaited_ = false;
    std::condition_variable changed_;
#endif
    stream(const stream &);
    stream &operator=(const stream &);

public:
    explicit stream(const char *name = "stream") : name_(name) {}
    ~stream() {
        if (!queue_.empty())
            std::fprintf(stderr, "warning: stream '%s' ends with %lu tokens unread\n", name_.c_str(),
                         (unsigned long)queue_.size());
    }
#ifdef HLS_STREAM_THREAD_SAFE
    void write(const _AP_T &value) {
        side_by_side &all = side_by_side::all();
        std::lock_guard<std::mutex> lock(all.mutex);
        queue_.push_back(value);
        if (awaited_) {
            awaited_ = false;
            all.go_on();
            changed_.notify_one();
        }
    }
    _AP_T read() {
        side_by_side &all = side_by_side::all();
        std::unique_lock<std::mutex> lock(all.mutex);
        if (queue_.empty() && all.runs()) {
            awaited_ = true;
            all.wait();
            changed_.wait(lock, [this] { return !queue_.empty(); });
        }
#else
    void write(const _AP_T &value) { queue_.push_back(value); }
    _AP_T read() {
#endif
        if (queue_.empty()) {
            std::fprintf(stderr, "error: read from empty stream '%s'\n", name_.c_str());
            std::abort();
        }
        _AP_T value = queue_.front();
        queue_.pop_front();
        return value;
    }
    void read(_AP_T &value) { value = read(); }
    bool empty() const { return queue_.empty(); }
    bool full() const { return false; }
    std::size_t size() const { return queue_.size(); }
    stream &operator<<(const _AP_T &value) { write(value); return *this; }
    stream &operator>>(_AP_T &value) { value = read(); return *this; }
};

// One that says its depth is one that does not, wherever it is passed on.
template <typename _AP_T, int _AP_DEPTH> class stream : public stream<_AP_T, 0> {
public:
    explicit stream(const char *name = "stream") : stream<_AP_T, 0>(name) {}
};

}  // namespace hls

#endif  // PENSTOCK_CSIM_HLS_STREAM_H
