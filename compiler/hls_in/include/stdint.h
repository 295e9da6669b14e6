// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#define INT8_C(NUMBER) NUMBER
#define INT16_C(NUMBER) NUMBER
#define INT32_C(NUMBER) NUMBER
#define INT64_C(NUMBER) NUMBER##L
#define UINT8_C(NUMBER) NUMBER
#define UINT16_C(NUMBER) NUMBER
#define UINT32_C(NUMBER) NUMBER##U
#define UINT64_C(NUMBER) NUMBER##UL
namespace std {
using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t;
using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t;
}
