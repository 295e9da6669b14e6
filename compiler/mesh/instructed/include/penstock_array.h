// The engines of an array of cores in C++: each runs the program that is loaded into it, on whatever shapes that says.
// Written for Penstock. penstock_array_sizes.h says how large this array is.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_ARRAY_H
#define PENSTOCK_ARRAY_H

#include <cstdint>

#include "hls_stream.h"
#include "penstock_array_sizes.h"

namespace penstock_array {

const int FIELDS = 16 + 8 * SLOTS > 48 ? 16 + 8 * SLOTS : 48;
const int ALL = 63, GO = 0xffff;
const uint32_t KEEP = 1, PASS = 2, OWN = 1;

struct word_t {
    int8_t byte[WORD];
};
struct entry_t {
    int32_t sum[TALL][WIDE];
};
typedef hls::stream<word_t> link_t;

struct programs_t {
    uint32_t rows[ROWS][FIELDS], columns[COLUMNS][FIELDS], writers[COLUMNS][FIELDS];
    uint32_t left[ROWS][COLUMNS][FIELDS], right[ROWS][COLUMNS][FIELDS], mac[ROWS][COLUMNS][FIELDS];
    uint32_t out[ROWS][COLUMNS][FIELDS];
};

// Tokens: whose (kind, row, column), which field, what value. ALL stands for every row or column.
inline void load_programs(const uint64_t *tokens, int count, programs_t &to) {
    for (int t = 0; t < count; ++t) {
#pragma HLS pipeline II = 1
        const int number = static_cast<int>(tokens[t] & 0xffff), field = static_cast<int>(tokens[t] >> 16 & 0xffff);
        const uint32_t value = static_cast<uint32_t>(tokens[t] >> 32);
        const int kind = number >> 12, row = number >> 6 & 63, column = number & 63;
        if (number == GO || field >= FIELDS) continue;
        for (int r = 0; r < ROWS; ++r) {
            if (row != ALL && row != r) continue;
            if (kind == 0) to.rows[r][field] = value;
            for (int c = 0; c < COLUMNS; ++c) {
                if (column != ALL && column != c) continue;
                if (kind == 3) to.left[r][c][field] = value;
                if (kind == 4) to.right[r][c][field] = value;
                if (kind == 5) to.mac[r][c][field] = value;
                if (kind == 6) to.out[r][c][field] = value;
            }
        }
        for (int c = 0; c < COLUMNS; ++c) {
            if (column != ALL && column != c) continue;
            if (kind == 1) to.columns[c][field] = value;
            if (kind == 2) to.writers[c][field] = value;
        }
    }
}

// The counters of a program's loops; fields 0 to LEVELS - 1 are their last turns.
struct loops_t {
    uint32_t at[LEVELS];
    loops_t() {
        for (int l = 0; l < LEVELS; ++l) at[l] = 0;
    }
    // The innermost that goes on; -1 where all are at their last turn.
    int goes(const uint32_t f[FIELDS]) const {
        for (int l = LEVELS - 1; l >= 0; --l)
            if (at[l] != f[l]) return l;
        return -1;
    }
    bool step(const uint32_t f[FIELDS]) {
        const int on = goes(f);
        for (int l = on + 1; l < LEVELS; ++l) at[l] = 0;
        if (on >= 0) ++at[on];
        return on >= 0;
    }
    bool first(uint32_t mask) const {
        for (int l = 0; l < LEVELS; ++l)
            if ((mask >> l & 1) && at[l] != 0) return false;
        return true;
    }
    bool last(const uint32_t f[FIELDS], uint32_t mask) const {
        for (int l = 0; l < LEVELS; ++l)
            if ((mask >> l & 1) && at[l] != f[l]) return false;
        return true;
    }
};

// A reader (of `memory` into `to`) and a writer (of `from` into `memory`) are one program with two ends.
template <typename MOVE> void each_word(const uint32_t f[FIELDS], MOVE move) {
    if (!f[9]) return;
    uint32_t place[SLOTS];
    for (int s = 0; s < SLOTS; ++s) place[s] = f[16 + 8 * s];
    loops_t loops;
    bool more = true;
    while (more) {
        const int on = loops.goes(f);
        for (uint32_t s = 0; s <= f[8]; ++s) {
            for (uint32_t w = 0; w <= f[17 + 8 * s]; ++w) {
#pragma HLS pipeline II = 1
                move(place[s] + w);
            }
            if (on >= 0) place[s] += f[18 + 8 * s + on];
        }
        more = loops.step(f);
    }
}

inline void reader(const uint32_t f[FIELDS], const word_t *memory, link_t &to) {
    each_word(f, [&](uint32_t at) { to.write(memory[at]); });
}

inline void writer(const uint32_t f[FIELDS], link_t &from, word_t *memory) {
    each_word(f, [&](uint32_t at) { memory[at] = from.read(); });
}

inline void mover(const uint32_t f[FIELDS], link_t &from, link_t &own, link_t &on) {
    if (!f[9]) return;
    for (uint32_t turn = 0; turn <= f[0]; ++turn)
        for (uint32_t s = 0; s <= f[8]; ++s)
            for (uint32_t w = 0; w <= f[16 + 8 * s]; ++w) {
#pragma HLS pipeline II = 1
                const word_t word = from.read();
                if (f[17 + 8 * s] & KEEP) own.write(word);
                if (f[17 + 8 * s] & PASS) on.write(word);
            }
}

// Words of a tile that a mover keeps.
inline uint32_t kept_words(const uint32_t f[FIELDS]) { return f[f[17] & KEEP ? 16 : 24] + 1; }

inline void mac(const uint32_t f[FIELDS], const uint32_t left_f[FIELDS], const uint32_t right_f[FIELDS],
                link_t &left_words, link_t &right_words, link_t &results) {
    if (!f[9]) return;
    word_t left[LEFT], right[RIGHT];
    entry_t sums[SUMS];
    const int LEFT_STEPS = WORD / (TALL * DEEP), RIGHT_STEPS = WORD / (WIDE * DEEP);
    uint32_t left_in = 0, right_in = 0, left_at = 0, right_at = 0, left_off = 0, right_off = 0, sum_at = 0;
    loops_t loops;
    bool more = true;
    while (more) {
        const int on = loops.goes(f);
        if (loops.first(f[14]))
            for (uint32_t w = 0; w < kept_words(left_f); ++w, left_in = left_in + 1 == f[20] ? 0 : left_in + 1)
                left[left_in] = left_words.read();
        if (loops.first(f[16]))
            for (uint32_t w = 0; w < kept_words(right_f); ++w, right_in = right_in + 1 == f[22] ? 0 : right_in + 1)
                right[right_in] = right_words.read();
        for (uint32_t i = 0; i <= f[10]; ++i)
            for (uint32_t j = 0; j <= f[11]; ++j)
                for (uint32_t k = 0; k <= f[12]; ++k) {
#pragma HLS pipeline II = 1
                    const uint32_t x = i * (f[12] + 1) + k, y = j * (f[12] + 1) + k;
                    const int8_t *a = left[left_at + left_off + x / LEFT_STEPS].byte + x % LEFT_STEPS * TALL * DEEP;
                    const int8_t *b = right[right_at + right_off + y / RIGHT_STEPS].byte + y % RIGHT_STEPS * WIDE * DEEP;
                    entry_t &entry = sums[sum_at + i * (f[11] + 1) + j];
                    for (int r = 0; r < TALL; ++r)
                        for (int c = 0; c < WIDE; ++c) {
#pragma HLS unroll
                            // sums wrap, as the hardware's do
                            uint32_t sum = loops.first(f[18]) && k == 0 ? 0 : static_cast<uint32_t>(entry.sum[r][c]);
                            for (int d = 0; d < DEEP; ++d) sum += static_cast<uint32_t>(a[r * DEEP + d] * b[c * DEEP + d]);
                            entry.sum[r][c] = static_cast<int32_t>(sum);
                        }
                }
        if (loops.last(f, f[18])) {
            for (uint32_t e = 0; e < f[23]; ++e)
                for (int part = 0; part < TALL * WIDE * 4 / WORD; ++part) {
                    word_t word;
                    for (int b = 0; b < WORD; ++b) {
                        const int at = part * WORD + b;
                        word.byte[b] = static_cast<int8_t>(
                            static_cast<uint32_t>(sums[sum_at + e].sum[at / 4 / WIDE][at / 4 % WIDE]) >> at % 4 * 8);
                    }
                    results.write(word);
                }
            sum_at = sum_at + f[23] == f[24] ? 0 : sum_at + f[23];
        }
        if (loops.last(f, f[15])) left_at = left_at + f[19] == f[20] ? 0 : left_at + f[19];
        if (loops.last(f, f[17])) right_at = right_at + f[21] == f[22] ? 0 : right_at + f[21];
        if (on >= 0) left_off += f[32 + on], right_off += f[40 + on];
        more = loops.step(f);
    }
}

inline void drain(const uint32_t f[FIELDS], link_t &own, link_t &above, link_t &on) {
    if (!f[9]) return;
    for (uint32_t turn = 0; turn <= f[0]; ++turn)
        for (uint32_t s = 0; s <= f[8]; ++s)
            for (uint32_t w = 0; w <= f[16 + 8 * s]; ++w) {
#pragma HLS pipeline II = 1
                on.write(f[17 + 8 * s] & OWN ? own.read() : above.read());
            }
}

}  // namespace penstock_array

#endif  // PENSTOCK_ARRAY_H
