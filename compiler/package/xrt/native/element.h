// The types of elements that arrays on disk and in the accelerator's memories have.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_ELEMENT_H
#define PENSTOCK_HOST_ELEMENT_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "failure.h"

namespace penstock {

enum class Element { BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64 };

// Calls `action` with a zero of the element's C++ type.
template <typename Action>
auto with_type(Element element, Action action) {
    switch (element) {
        case Element::BOOL: return action(bool{});
        case Element::INT8: return action(std::int8_t{});
        case Element::INT16: return action(std::int16_t{});
        case Element::INT32: return action(std::int32_t{});
        case Element::INT64: return action(std::int64_t{});
        case Element::UINT8: return action(std::uint8_t{});
        case Element::UINT16: return action(std::uint16_t{});
        case Element::UINT32: return action(std::uint32_t{});
        case Element::UINT64: return action(std::uint64_t{});
        case Element::FLOAT32: return action(float{});
        case Element::FLOAT64: break;
    }
    return action(double{});
}

inline std::size_t bytes_of(Element element) {
    return with_type(element, [](auto zero) { return sizeof(zero); });
}

inline bool is_float(Element element) { return element == Element::FLOAT32 || element == Element::FLOAT64; }

using Shape = std::vector<std::size_t>;

inline std::size_t count_of(const Shape &shape) {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

inline std::string text_of(const Shape &shape) {
    std::string text = "(";
    for (std::size_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + ")";
}

// A tensor in C order.
struct Array {
    Element element = Element::INT8;
    Shape shape;
    std::vector<char> data;
};

}  // namespace penstock

#endif  // PENSTOCK_HOST_ELEMENT_H
