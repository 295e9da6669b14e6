// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace std {
struct ostream {
    template <typename _AP_T> ostream &operator<<(const _AP_T &value);
};
extern ostream cout;
extern ostream cerr;
extern const char endl;
}
