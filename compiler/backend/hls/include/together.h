// Tasks whose streams lead back to where they come from, for C simulation: each in a thread of its own, since none can
// run to its end before the others. A read waits for its token. Included before any header of streams.
// Written for Penstock. SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_TOGETHER_H
#define PENSTOCK_TOGETHER_H

#define HLS_STREAM_THREAD_SAFE

#include <functional>
#include <thread>
#include <vector>

#include "hls_stream.h"

namespace pk {

inline void together(const std::vector<std::function<void()> > &tasks) {
    std::vector<std::thread> threads;
#ifdef PENSTOCK_CSIM_HLS_STREAM_H
    hls::side_by_side::all().begin(tasks.size());
#endif
    for (const std::function<void()> &task : tasks)
        threads.emplace_back([&task] {
            task();
#ifdef PENSTOCK_CSIM_HLS_STREAM_H
            hls::side_by_side::all().end();
#endif
        });
    for (std::thread &thread : threads) thread.join();
}

}  // namespace pk

#endif  // PENSTOCK_TOGETHER_H
