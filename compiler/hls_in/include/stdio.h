// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
struct FILE;
int printf(const char *, ...);
int fprintf(FILE *, const char *, ...);
int fscanf(FILE *, const char *, ...);
FILE *fopen(const char *, const char *);
int fclose(FILE *);
namespace std { using ::printf; }
