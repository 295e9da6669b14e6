// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#define INFINITY __builtin_inff()
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define NAN __builtin_nanf("")
#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define PENSTOCK_UNARY(NAME) double NAME(double); float NAME(float); float NAME##f(float);
#define PENSTOCK_BINARY(NAME) double NAME(double, double); float NAME(float, float); float NAME##f(float, float);
namespace hls {
PENSTOCK_UNARY(exp) PENSTOCK_UNARY(log) PENSTOCK_UNARY(sqrt) PENSTOCK_UNARY(tanh) PENSTOCK_UNARY(sin)
PENSTOCK_UNARY(cos) PENSTOCK_UNARY(floor) PENSTOCK_UNARY(ceil) PENSTOCK_UNARY(erf) PENSTOCK_UNARY(rsqrt)
PENSTOCK_UNARY(recip) PENSTOCK_UNARY(fabs) PENSTOCK_UNARY(abs)
PENSTOCK_UNARY(rint) PENSTOCK_UNARY(trunc) PENSTOCK_UNARY(round) PENSTOCK_UNARY(exp2) PENSTOCK_UNARY(log2)
PENSTOCK_UNARY(tan) PENSTOCK_UNARY(asin) PENSTOCK_UNARY(acos) PENSTOCK_UNARY(atan) PENSTOCK_UNARY(sinh)
PENSTOCK_UNARY(cosh) PENSTOCK_UNARY(log10) PENSTOCK_UNARY(cbrt) PENSTOCK_BINARY(atan2) PENSTOCK_BINARY(hypot)
PENSTOCK_BINARY(pow) PENSTOCK_BINARY(fmax) PENSTOCK_BINARY(fmin) PENSTOCK_BINARY(max) PENSTOCK_BINARY(min)
int max(int, int); int min(int, int); long max(long, long); long min(long, long);
unsigned max(unsigned, unsigned); unsigned min(unsigned, unsigned); int abs(int); long abs(long);
}
PENSTOCK_UNARY(exp) PENSTOCK_UNARY(log) PENSTOCK_UNARY(sqrt) PENSTOCK_UNARY(tanh) PENSTOCK_UNARY(sin)
PENSTOCK_UNARY(cos) PENSTOCK_UNARY(floor) PENSTOCK_UNARY(ceil) PENSTOCK_UNARY(erf) PENSTOCK_UNARY(fabs)
PENSTOCK_UNARY(rint) PENSTOCK_UNARY(trunc) PENSTOCK_UNARY(round) PENSTOCK_UNARY(exp2) PENSTOCK_UNARY(log2)
PENSTOCK_UNARY(tan) PENSTOCK_UNARY(asin) PENSTOCK_UNARY(acos) PENSTOCK_UNARY(atan) PENSTOCK_UNARY(sinh)
PENSTOCK_UNARY(cosh) PENSTOCK_UNARY(log10) PENSTOCK_UNARY(cbrt) PENSTOCK_BINARY(atan2) PENSTOCK_BINARY(hypot)
PENSTOCK_BINARY(pow) PENSTOCK_BINARY(fmax) PENSTOCK_BINARY(fmin)
double ldexp(double, int); float ldexp(float, int); float ldexpf(float, int);
namespace std {
using ::exp; using ::log; using ::sqrt; using ::tanh; using ::sin; using ::cos; using ::floor; using ::ceil;
using ::erf; using ::fabs; using ::pow; using ::fmax; using ::fmin; using ::rint; using ::trunc; using ::round;
using ::exp2; using ::log2; using ::ldexp; using ::tan; using ::asin; using ::acos; using ::atan; using ::sinh;
using ::cosh; using ::log10; using ::cbrt; using ::atan2; using ::hypot;
float abs(float); double abs(double);
}
int abs(int);
#undef PENSTOCK_UNARY
#undef PENSTOCK_BINARY
