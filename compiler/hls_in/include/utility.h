// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>
namespace std {
template <typename _AP_T> void swap(_AP_T &, _AP_T &);
}
