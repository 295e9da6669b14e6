// Who runs which inference when: compute units in turn, and on each of them its sets of buffers in turn, so that the
// transfers of one inference overlap the computation of others.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_SCHEDULE_H
#define PENSTOCK_HOST_SCHEDULE_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace penstock {

struct Slot {
    std::size_t unit;
    std::size_t set;
};

// The slot of an inference: neighbours run on different units, and come back to a unit in its next set.
inline Slot slot_of(std::size_t inference, std::size_t units, std::size_t sets) {
    const std::size_t turn = inference % (units * sets);
    return {turn % units, turn / units};
}

// Begins every inference as soon as its slot is free and ends all in order: `begin(n)` sends and starts, `end(n)`
// waits and fetches. With two sets a unit computes one inference while the host serves the other.
template <typename Begin, typename End>
void run_overlapped(std::size_t count, std::size_t units, std::size_t sets, Begin begin, End end) {
    const std::size_t slots = units * sets;
    for (std::size_t n = 0; n < count; ++n) {
        if (n >= slots) end(n - slots);
        begin(n);
    }
    for (std::size_t n = count > slots ? count - slots : 0; n < count; ++n) end(n);
}

// The least, the middle and the most of some measurements.
struct Spread {
    double least = 0.0;
    double median = 0.0;
    double most = 0.0;
};

inline Spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    const double median = values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return {values.front(), median, values.back()};
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_SCHEDULE_H
