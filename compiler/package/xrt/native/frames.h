// What a user's or the package's arrays become on their way to the accelerator and back: numbers checked, quantised,
// cut into frames and packed. A frame is what one run of the accelerator reads or writes of one tensor.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_FRAMES_H
#define PENSTOCK_HOST_FRAMES_H

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "memory.h"
#include "npy.h"

namespace penstock {

using Frames = std::vector<Bytes>;

template <typename T>
T element_at(const std::vector<char> &data, std::size_t index) {
    T value;
    std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
bool is_negative(T value) {
    if constexpr (std::is_signed_v<T>) return value < T{};
    return false;
}

// `value` as a To, or false where it would silently become another number.
template <typename To, typename From>
bool convert(From value, To &to) {
    if constexpr (std::is_floating_point_v<To>) {
        to = static_cast<To>(value);
        return std::isfinite(static_cast<double>(to));
    } else if constexpr (std::is_floating_point_v<From>) {
        const double low = static_cast<double>(std::numeric_limits<To>::min());
        const double high = std::ldexp(1.0, std::numeric_limits<To>::digits);
        if (!(value >= low && value < high) || value != std::nearbyint(value)) return false;
        to = static_cast<To>(value);
        return true;
    } else {
        to = static_cast<To>(value);
        return static_cast<From>(to) == value && is_negative(to) == is_negative(value);
    }
}

template <typename To>
bool quantise(float value, float scale, To &to) {
    if (!std::isfinite(value)) return false;
    const float scaled = std::nearbyint(value / scale);
    const double low = static_cast<double>(std::numeric_limits<To>::min());
    const double high = static_cast<double>(std::numeric_limits<To>::max());
    to = static_cast<To>(std::min(std::max(static_cast<double>(scaled), low), high));
    return true;
}

// The array's numbers as the memory's elements, in C order.
inline Bytes to_elements(const Array &array, const Memory &memory, bool exact, const std::string &path) {
    Bytes result(count_of(array.shape) * bytes_of(memory.element));
    const bool scaled = !memory.scale.empty() && !exact;
    with_type(array.element, [&](auto from_zero) {
        with_type(memory.element, [&](auto to_zero) {
            using From = decltype(from_zero);
            using To = decltype(to_zero);
            for (std::size_t i = 0; i < count_of(array.shape); ++i) {
                const From value = element_at<From>(array.data, i);
                To to{};
                const bool fits = scaled
                                      ? quantise(static_cast<float>(value), memory.scale[i % memory.scale.size()], to)
                                      : convert(value, to);
                if (!fits)
                    throw Failure(BAD_INPUT,
                                  path + ": element " + std::to_string(i) + " cannot be a value of " + memory.name,
                                  "pass finite numbers of the port's type");
                std::memcpy(result.data() + i * sizeof(To), &to, sizeof(To));
            }
            return 0;
        });
        return 0;
    });
    return result;
}

// Tensors one after the other, each a frame.
inline Frames cut(const Bytes &elements, const Memory &memory) {
    Frames frames;
    const std::size_t bytes = memory.tensor_bytes();
    for (std::size_t place = 0; place + bytes <= elements.size(); place += bytes)
        frames.emplace_back(elements.begin() + static_cast<std::ptrdiff_t>(place),
                            elements.begin() + static_cast<std::ptrdiff_t>(place + bytes));
    return frames;
}

// Tensors as they lie in the accelerator's memory.
inline Frames packed(Frames frames, const Memory &memory) {
    const Packing packing(memory);
    for (Bytes &frame : frames) frame = packing.pack(frame.data());
    return frames;
}

// A shape without the ones that it begins with.
inline Shape stripped(const Shape &shape) {
    Shape rest = shape;
    while (!rest.empty() && rest.front() == 1) rest.erase(rest.begin());
    return rest;
}

// The frames of an array: of the model's shape, or several of it one after the other along the first dims.
// `exact` says that the numbers are the accelerator's own, so that nothing is quantised.
inline Frames frames_of(const Array &array, const Memory &memory, bool exact, const std::string &path) {
    const Shape wanted = stripped(memory.model);
    const bool fits =
        array.shape.size() >= wanted.size() && std::equal(wanted.rbegin(), wanted.rend(), array.shape.rbegin());
    if (!fits || count_of(array.shape) == 0)
        throw Failure(
            BAD_INPUT,
            path + " has shape " + text_of(array.shape) + ", " + memory.name + " has " + text_of(memory.model),
            "reshape it, or put several along a new first dimension");
    return cut(to_elements(array, memory, exact, path), memory);
}

// A .npy file, or a raw one: the accelerator's own elements in C order, little-endian, any number of frames.
inline Frames read_frames(const std::string &path, const Memory &memory, bool exact) {
    if (path.size() > 4 && path.compare(path.size() - 4, 4, ".npy") == 0)
        return frames_of(read_npy(path), memory, exact, path);
    const Bytes raw = read_file(path);
    if (raw.empty() || raw.size() % memory.tensor_bytes())
        throw Failure(BAD_INPUT,
                      path + " holds " + std::to_string(raw.size()) + " bytes, a frame of " + memory.name + " has " +
                          std::to_string(memory.tensor_bytes()),
                      "raw files hold whole frames of the port's own elements");
    return cut(raw, memory);
}

// A packed parameter of the package.
inline Bytes read_parameter(const std::string &package, const Memory &memory) {
    const std::string path = package + "/" + memory.file;
    Bytes data = read_file(path);
    if (data.size() != memory.bytes())
        throw Failure(BAD_INPUT,
                      path + " holds " + std::to_string(data.size()) + " bytes, not " + std::to_string(memory.bytes()),
                      "fetch the package again");
    return data;
}

// Answers as one array along a new first dimension: the model's real numbers, or with `exact` the accelerator's own.
inline Array answers_of(const Frames &frames, const Memory &memory, bool exact) {
    Array array{memory.element, memory.model, {}};
    array.shape.insert(array.shape.begin(), frames.size());
    for (const Bytes &frame : frames) array.data.insert(array.data.end(), frame.begin(), frame.end());
    if (memory.scale.empty() || exact) return array;
    Array real{Element::FLOAT32, array.shape, Bytes(count_of(array.shape) * sizeof(float))};
    with_type(memory.element, [&](auto zero) {
        for (std::size_t i = 0; i < count_of(array.shape); ++i) {
            const float value =
                static_cast<float>(element_at<decltype(zero)>(array.data, i)) * memory.scale[i % memory.scale.size()];
            std::memcpy(real.data.data() + i * sizeof(float), &value, sizeof(float));
        }
        return 0;
    });
    return real;
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_FRAMES_H
