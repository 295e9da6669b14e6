// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
typedef unsigned long size_t;
typedef long ptrdiff_t;
#define NULL 0
namespace std { using ::size_t; }
