// Answers against stored ones: integers bit for bit, floats within a tolerance that is stated.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_COMPARE_H
#define PENSTOCK_HOST_COMPARE_H

#include <algorithm>
#include <cmath>
#include <cstring>

#include "frames.h"

namespace penstock {

// `wrong` values differ by more than is allowed; `largest` is the largest difference of finite values.
struct Comparison {
    std::size_t values = 0;
    std::size_t wrong = 0;
    double largest = 0.0;

    void add(const Comparison &other) {
        values += other.values;
        wrong += other.wrong;
        largest = std::max(largest, other.largest);
    }
};

// Two frames of one tensor. `tolerance` is a share of the largest value that is expected, and
// counts for floats only: hardware may round an exponential otherwise than the interpreter does.
inline Comparison compare(const Bytes &found, const Bytes &expected, Element element, double tolerance) {
    Comparison result;
    result.values = expected.size() / bytes_of(element);
    if (found.size() == expected.size() && std::memcmp(found.data(), expected.data(), found.size()) == 0) return result;
    if (found.size() != expected.size()) {
        result.wrong = result.values;
        return result;
    }
    with_type(element, [&](auto zero) {
        using T = decltype(zero);
        double scale = 0.0;
        for (std::size_t i = 0; i < result.values; ++i) {
            const double wanted = std::fabs(static_cast<double>(element_at<T>(expected, i)));
            if (std::isfinite(wanted)) scale = std::max(scale, wanted);
        }
        const double allowed = std::is_floating_point_v<T> ? tolerance * scale : 0.0;
        for (std::size_t i = 0; i < result.values; ++i) {
            const T a = element_at<T>(found, i), b = element_at<T>(expected, i);
            if (a == b || (a != a && b != b)) continue;
            const double difference = std::fabs(static_cast<double>(a) - static_cast<double>(b));
            if (std::isfinite(difference)) result.largest = std::max(result.largest, difference);
            if (std::is_floating_point_v<T> ? !(difference <= allowed) : true) ++result.wrong;
        }
        return 0;
    });
    return result;
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_COMPARE_H
