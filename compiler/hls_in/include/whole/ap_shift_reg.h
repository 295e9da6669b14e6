// What it does is read as the source is, and compiled where values are compared. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
template <typename T, unsigned DEPTH = 32> struct ap_shift_reg {
  T held[DEPTH];
  T read(unsigned at = DEPTH - 1) const { return held[at]; }
  T shift(T value, unsigned at = DEPTH - 1, bool enable = true) {
    T found = held[at];
    if (enable) {
      for (unsigned n = DEPTH - 1; n > 0; n--) {
        held[n] = held[n - 1];
      }
      held[0] = value;
    }
    return found;
  }
};
