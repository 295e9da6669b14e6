// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>
namespace std {
template <typename _AP_T> const _AP_T &max(const _AP_T &, const _AP_T &);
template <typename _AP_T> const _AP_T &min(const _AP_T &, const _AP_T &);
}
