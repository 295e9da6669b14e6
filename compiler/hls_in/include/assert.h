// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
void __penstock_assert(bool);
#define assert(condition) __penstock_assert(condition)
namespace std {}
