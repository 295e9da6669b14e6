// Runs every core of the bench against the host, one vector a cycle, with random stalls of the clock enable.
// Prints one line a core: name, vectors, largest error in ulp, the operands and results of the worst case.
// Arguments: vectors, seed, and with a third the operands a, b, c are the bytes of 0, 1, 2 and so on.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vbench.h"
#include "verilated.h"

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

static float as_float(u64 bits) { u32 low = static_cast<u32>(bits); float f; std::memcpy(&f, &low, 4); return f; }
static u32 as_bits(float f) { u32 bits; std::memcpy(&bits, &f, 4); return bits; }
static i64 sign_extend(u64 x, int width) { return static_cast<i64>(x << (64 - width)) >> (64 - width); }
static bool is_nan(u32 x) { return (x & 0x7FFFFFFFu) > 0x7F800000u; }

static float flushed(u64 bits) {
    u32 low = static_cast<u32>(bits);
    return as_float((low & 0x7F800000u) == 0 ? low & 0x80000000u : low);
}

// An exact or nearly exact value as the cores round it: 0 below the normal numbers.
static u32 rounded(double value) {
    if (std::isnan(value)) return 0x7FC00000u;
    if (std::fabs(value) < 0x1p-126) return std::signbit(value) ? 0x80000000u : 0;
    return as_bits(static_cast<float>(value));
}

static double to_integer(double value, int width, bool is_signed) {
    const double low = is_signed ? -std::ldexp(1.0, width - 1) : 0.0;
    const double high = std::ldexp(1.0, is_signed ? width - 1 : width);
    value = std::isnan(value) ? 0.0 : std::trunc(value);
    return value < low ? low : value >= high ? high : value;
}

static u64 saturated(double value, int width, bool is_signed) {
    value = to_integer(value, width, is_signed);
    const double high = std::ldexp(1.0, is_signed ? width - 1 : width);
    const u64 mask = width == 64 ? ~0ull : (1ull << width) - 1;
    if (value >= high) return is_signed ? mask >> 1 : mask;
    return (value < 0 ? static_cast<u64>(static_cast<i64>(value)) : static_cast<u64>(value)) & mask;
}

static bool compare(float x, float y, int predicate) {
    const bool unordered = std::isnan(x) || std::isnan(y);
    if (predicate == 0 || predicate == 15) return predicate == 15;
    if (predicate == 7 || predicate == 14) return unordered == (predicate == 14);
    const bool holds[] = {x == y, x > y, x >= y, x < y, x <= y, x != y};
    return predicate < 7 ? holds[predicate - 1] && !unordered : holds[predicate - 8] || unordered;
}

// maximum and minimum hand on a NaN, maxnum and minnum the other operand; -0 is below +0.
static u32 extreme(u32 x, u32 y, bool want_larger, bool nan_wins) {
    if (is_nan(x) || is_nan(y)) return nan_wins || (is_nan(x) && is_nan(y)) ? 0x7FC00000u : is_nan(x) ? y : x;
    const float a = as_float(x), b = as_float(y);
    const bool x_larger = a > b || (a == b && !std::signbit(a));
    return x_larger == want_larger ? x : y;
}

static u64 integer_product(u64 a, u64 b, int aw, int bw, int yw) {
    const u64 product = static_cast<u64>(sign_extend(a, aw)) * static_cast<u64>(sign_extend(b, bw));
    return yw == 64 ? product : product & ((1ull << yw) - 1);
}

// What a division by zero gives is not defined: whatever came is right.
static u64 divided(u64 a, u64 b, bool is_signed, bool rest, int rounding, u64 got) {
    const i64 x = is_signed ? sign_extend(a, 32) : static_cast<i64>(a & 0xFFFFFFFFu);
    const i64 y = is_signed ? sign_extend(b, 32) : static_cast<i64>(b & 0xFFFFFFFFu);
    if (y == 0) return got;
    i64 quotient = x / y;
    if (rounding == 1 && quotient * y != x && (x < 0) != (y < 0)) --quotient;
    if (rounding == 2 && quotient * y != x && (x < 0) == (y < 0)) ++quotient;
    return static_cast<u64>(rest ? x - quotient * y : quotient) & 0xFFFFFFFFu;
}

struct Case {
    const char* name;
    int latency;
    const void* output;   // of the Verilated model
    int output_bits;
    bool is_float;
    u64 (*reference)(u64 a, u64 b, u64 got);
};

static u64 read_output(const Case& c) {
    if (c.output_bits <= 8) return *static_cast<const uint8_t*>(c.output);
    if (c.output_bits <= 16) return *static_cast<const uint16_t*>(c.output);
    if (c.output_bits <= 32) return *static_cast<const u32*>(c.output);
    return *static_cast<const u64*>(c.output);
}

static i64 ordered(u32 x) { return x & 0x80000000u ? -static_cast<i64>(x & 0x7FFFFFFFu) : static_cast<i64>(x); }

// Units in the last place between two f32; a NaN matches only a NaN; 0 and the smallest normal number are neighbours.
static i64 distance(u32 got, u32 want) {
    if (is_nan(got) || is_nan(want)) return is_nan(got) && is_nan(want) ? 0 : INT64_MAX;
    auto position = [](u32 x) {
        const i64 p = ordered(x);
        return p > 0x7FFFFF ? p - 0x7FFFFF : p < -0x7FFFFF ? p + 0x7FFFFF : 0;
    };
    return std::llabs(position(got) - position(want));
}

static u64 random_state;
static u64 random_bits() {  // xorshift64*
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1Dull;
}

static const u32 SPECIAL[] = {
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F7FFFFF,
    0xFF7FFFFF, 0x00800000, 0x80800000, 0x007FFFFF, 0x00000001, 0x3F7FFFFF, 0x3F800001, 0x3F000000, 0xBF000000,
    0x40000000, 0x3EFFFFFF, 0x3F000001, 0x4B000000, 0x4AFFFFFF, 0x4B7FFFFF, 0x4B800000, 0x42B17218, 0x42B17217,
    0x42B17219, 0xC2AEAC50, 0xC2AEAC4F, 0xC2AEAC51, 0x4F000000, 0xCF000000, 0x4EFFFFFF, 0x5F000000, 0xDF000000,
    0x5EFFFFFF, 0x4F800000, 0x5F800000, 0x43000000, 0xC3000000, 0x42FF0000, 0x47000000, 0xC7000000, 0x3FB504F3,
    0x3F3504F3, 0x3FC00000, 0x40200000, 0xC0200000, 0x41102CB4, 0x4077F5C3, 0x39800000};

static u32 random_float() {
    const u64 r = random_bits();
    const u32 low = static_cast<u32>(r);
    switch ((r >> 32) % 8) {
        case 0: return low;                                                                     // any bits
        case 1: return SPECIAL[low % (sizeof SPECIAL / 4)];
        case 2: return (low & 0x807FFFFFu) | ((126 + (r >> 40) % 2) << 23);                     // around one
        case 3: return as_bits(static_cast<float>(static_cast<int32_t>(low)) * 0x1p-24f);       // up to 128
        case 4: return as_bits(static_cast<float>(static_cast<int32_t>(low) >> 20));            // small integers
        case 5: return as_bits(static_cast<float>(static_cast<int32_t>(low) >> 16) * 0.5f);     // halves
        default: return (low & 0x807FFFFFu) | ((111 + (r >> 40) % 32) << 23);                   // 2^-16 to 2^16
    }
}

struct Operands { u64 a, b; };

static Operands random_operands() {
    Operands o{random_bits(), random_bits()};
    o.a = (o.a & ~0xFFFFFFFFull) | random_float();
    o.b = (o.b & ~0xFFFFFFFFull) | random_float();
    const u64 r = random_bits();
    switch (r % 16) {
        case 0: o.b = (o.b & ~0xFFFFFFFFull) | ((static_cast<u32>(o.a) ^ (r >> 63 << 31)) + (r >> 32) % 5 - 2); break;
        case 1: o.b = (o.b & ~0xFF800000ull) | ((static_cast<u32>(o.a) + ((r >> 32) % 52 << 23)) & 0xFF800000u); break;
        case 2: o.a = static_cast<u64>(static_cast<i64>(o.a) >> (r >> 32) % 63); break;         // integers of any size
        case 3: o.b = static_cast<u64>(static_cast<i64>(o.b) >> (r >> 32) % 63); break;
        case 4: o.a = 1ull << (r >> 32) % 64; break;
        case 5: o.a = 0 - (1ull << (r >> 32) % 64) + (r >> 60) % 3; break;
        case 6: o.a = ~0ull; break;
        default: break;
    }
    return o;
}

#include "cases.h"  // static std::vector<Case> all_cases(const Vbench& bench)

int main(int argc, char** argv) {
    const u64 vectors = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
    random_state = argc > 2 ? std::strtoull(argv[2], nullptr, 10) * 0x9E3779B97F4A7C15ull + 1 : 1;
    VerilatedContext context;
    Vbench bench{&context};
    const std::vector<Case> cases = all_cases(bench);
    struct Worst { i64 error = 0; Operands operands{}; u64 got = 0, want = 0; u64 checked = 0, inexact = 0; };
    std::vector<Worst> worst(cases.size());
    constexpr u64 KEPT = 256;  // more than the longest latency
    std::vector<Operands> taken(KEPT);
    for (u64 accepted = 0; accepted < vectors;) {
        const bool enabled = random_bits() % 4 != 0;
        const Operands operands = random_operands();
        bench.ce = enabled;
        bench.a = operands.a;
        bench.b = operands.b;
        bench.c = operands.a >> 16;
        bench.clk = 0;
        bench.eval();
        bench.clk = 1;
        bench.eval();
        if (enabled) taken[accepted++ % KEPT] = operands;
        for (size_t k = 0; k < cases.size(); ++k) {
            const Case& c = cases[k];
            if (accepted < static_cast<u64>(c.latency)) continue;
            if (!enabled && random_bits() % 8) continue;  // held results are checked now and then
            const Operands& o = taken[(accepted - c.latency) % KEPT];
            const u64 got = read_output(c), want = c.reference(o.a, o.b, got);
            const i64 error = c.is_float ? distance(static_cast<u32>(got), static_cast<u32>(want)) : got != want;
            Worst& w = worst[k];
            ++w.checked;
            const bool both_nan = c.is_float && is_nan(static_cast<u32>(got)) && is_nan(static_cast<u32>(want));
            const bool differs = got != want && !both_nan;  // the sign of a zero counts here
            if (error > w.error || (differs && w.inexact == 0)) w = {error, o, got, want, w.checked, w.inexact};
            w.inexact += differs;
        }
    }
    for (size_t k = 0; k < cases.size(); ++k) {
        const Worst& w = worst[k];
        std::printf("%s %llu %lld %llu %llx %llx %llx %llx\n", cases[k].name,
                    static_cast<unsigned long long>(w.checked), static_cast<long long>(w.error),
                    static_cast<unsigned long long>(w.inexact), static_cast<unsigned long long>(w.operands.a),
                    static_cast<unsigned long long>(w.operands.b), static_cast<unsigned long long>(w.got),
                    static_cast<unsigned long long>(w.want));
    }
    return 0;
}
