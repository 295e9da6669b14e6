// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
