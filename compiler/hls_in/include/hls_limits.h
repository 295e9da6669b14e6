// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace hls {
template <typename _AP_T> struct numeric_limits {
    static _AP_T max();
    static _AP_T min();
    static _AP_T epsilon();
};
}
