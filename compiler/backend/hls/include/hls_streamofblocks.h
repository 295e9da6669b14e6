// A small subset of hls::stream_of_blocks for C simulation: whole arrays handed from a writer to a reader.
// Written for Penstock; Vitis' own header can be used in its place.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_HLS_STREAMOFBLOCKS_H
#define PENSTOCK_CSIM_HLS_STREAMOFBLOCKS_H

#include <cstdio>
#include <cstdlib>
#include <deque>

namespace hls {

template <typename Block> struct block_holder {
    Block data;
    block_holder() : data() {}
};

template <typename Block, int _AP_DEPTH = 2> class stream_of_blocks {
    std::deque<block_holder<Block> > queue_;
    stream_of_blocks(const stream_of_blocks &);
    stream_of_blocks &operator=(const stream_of_blocks &);

public:
    stream_of_blocks() {}
    bool empty() const { return queue_.empty(); }
    // A deque keeps references valid while blocks are added at its end and taken from its front.
    Block &push() {
        queue_.push_back(block_holder<Block>());
        return queue_.back().data;
    }
    Block &front() {
        if (queue_.empty()) {
            std::fprintf(stderr, "error: read of a block that nobody wrote\n");
            std::abort();
        }
        return queue_.front().data;
    }
    void pop() { queue_.pop_front(); }
};

template <typename Block> class write_lock {
    Block &block_;

public:
    template <int _AP_DEPTH> explicit write_lock(stream_of_blocks<Block, _AP_DEPTH> &channel) : block_(channel.push()) {}
    operator Block &() { return block_; }
};

template <typename Block> class read_lock {
    Block &block_;
    void *channel_;
    void (*pop_)(void *);
    template <int _AP_DEPTH> static void pop(void *channel) {
        static_cast<stream_of_blocks<Block, _AP_DEPTH> *>(channel)->pop();
    }
    read_lock(const read_lock &);
    read_lock &operator=(const read_lock &);

public:
    template <int _AP_DEPTH>
    explicit read_lock(stream_of_blocks<Block, _AP_DEPTH> &channel)
        : block_(channel.front()), channel_(&channel), pop_(&pop<_AP_DEPTH>) {}
    ~read_lock() { pop_(channel_); }
    operator Block &() { return block_; }
};

}  // namespace hls

#endif  // PENSTOCK_CSIM_HLS_STREAMOFBLOCKS_H
