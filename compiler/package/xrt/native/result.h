// What a run found, for people and as JSON. Times are the board's: an emulated device has none.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_RESULT_H
#define PENSTOCK_HOST_RESULT_H

#include <cstdio>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "compare.h"
#include "schedule.h"

namespace penstock {

struct Result {
    std::string design;
    std::string kernel;
    std::string xclbin;
    std::vector<std::string> units;
    std::size_t device = 0;
    std::size_t sets = 0;
    std::size_t inferences = 0;
    std::size_t checked = 0;
    double tolerance = 0.0;
    bool verified = false;
    bool emulated = false;
    double seconds = 0.0;
    Comparison comparison;
    Spread latency;
    Spread to_device;
    Spread kernel_time;
    Spread from_device;

    bool ok() const { return comparison.wrong == 0; }
    double per_second() const { return static_cast<double>(inferences) / seconds; }
};

inline std::string quoted(const std::string &text) {
    std::ostringstream out;
    out << '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') out << '\\' << c;
        else if (static_cast<unsigned char>(c) < 32)
            out << "\\u" << std::hex << std::setw(4) << std::setfill('0') << static_cast<int>(c);
        else out << c;
    }
    out << '"';
    return out.str();
}

inline std::string json_of(const Spread &spread) {
    std::ostringstream out;
    out << "{\"least\": " << spread.least << ", \"median\": " << spread.median << ", \"most\": " << spread.most << "}";
    return out.str();
}

inline std::string json_of(const Result &result) {
    std::ostringstream out;
    out << std::setprecision(10) << "{\"design\": " << quoted(result.design)
        << ", \"kernel\": " << quoted(result.kernel) << ", \"xclbin\": " << quoted(result.xclbin)
        << ", \"device\": " << result.device << ", \"units\": [";
    for (std::size_t i = 0; i < result.units.size(); ++i) out << (i ? ", " : "") << quoted(result.units[i]);
    out << "], \"sets\": " << result.sets << ", \"inferences\": " << result.inferences << ", \"verify\": ";
    if (result.verified)
        out << "{\"inferences\": " << result.checked << ", \"values\": " << result.comparison.values
            << ", \"values_wrong\": " << result.comparison.wrong << ", \"max_abs_error\": " << result.comparison.largest
            << ", \"tolerance\": " << result.tolerance << "}";
    else out << "null";
    out << ", \"timing\": ";
    if (result.emulated) out << "null";
    else
        out << "{\"evidence\": \"board\", \"inferences_per_second\": " << result.per_second()
            << ", \"latency_us\": " << json_of(result.latency) << ", \"to_device_us\": " << json_of(result.to_device)
            << ", \"kernel_us\": " << json_of(result.kernel_time)
            << ", \"from_device_us\": " << json_of(result.from_device) << "}";
    out << ", \"ok\": " << (result.ok() ? "true" : "false") << "}\n";
    return out.str();
}

inline std::string text_of(const Result &result) {
    std::ostringstream out;
    out << std::setprecision(6) << "design    " << result.design << ": " << result.kernel << " of " << result.xclbin
        << " on device " << result.device << "\nunits     ";
    for (std::size_t i = 0; i < result.units.size(); ++i) out << (i ? ", " : "") << result.units[i];
    out << "; sets of buffers for each: " << result.sets << "\nran       " << result.inferences << " inferences";
    if (result.emulated) out << "\ntimes     not measured: XCL_EMULATION_MODE is set\n";
    else
        out << ", " << result.per_second() << " a second [board]\nlatency   " << result.latency.median << " us, from "
            << result.latency.least << " to " << result.latency.most << " [board]\nof it     to the device "
            << result.to_device.median << ", kernel " << result.kernel_time.median << ", from the device "
            << result.from_device.median << " us [board]\n";
    if (result.verified) {
        const std::size_t right = result.comparison.values - result.comparison.wrong;
        out << "verify    " << right << " of " << result.comparison.values << " values of " << result.checked
            << " inferences as stored (integers bit for bit, floats within " << result.tolerance
            << " of the largest); largest difference " << result.comparison.largest << "\n"
            << (result.ok() ? "ok" : "FAILED") << "\n";
    }
    return out.str();
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_RESULT_H
