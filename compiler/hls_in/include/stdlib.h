// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
int abs(int);
void exit(int);
namespace std {}
