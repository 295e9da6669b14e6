// The host's arrays as arrays of the accelerator's own words, for C simulation: copied element by element, because
// a word is an object of its own, and may ask for more alignment than an array of its elements has.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_CSIM_WORDS_H
#define PENSTOCK_CSIM_WORDS_H

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "hls_vector.h"

namespace pk {

template <typename Word> inline Word &lane(Word &word, std::size_t) { return word; }
template <typename T, std::size_t N> inline T &lane(hls::vector<T, N> &word, std::size_t i) { return word[i]; }

// `Host` is the type of the host's elements, LANES of which make a word.
template <typename Word, typename Host, std::size_t LANES> class words {
    std::size_t count_;
    std::unique_ptr<char[]> room_;
    Word *data_;

public:
    explicit words(std::size_t count)
        : count_(count), room_(new char[count * sizeof(Word) + alignof(Word)]), data_(nullptr) {
        void *start = room_.get();
        std::size_t size = count * sizeof(Word) + alignof(Word);
        start = std::align(alignof(Word), count * sizeof(Word), start, size);
        data_ = static_cast<Word *>(start);
        for (std::size_t i = 0; i < count; ++i) new (data_ + i) Word();
    }
    Word *data() { return data_; }
    void read(const void *array) {
        const char *from = static_cast<const char *>(array);
        for (std::size_t i = 0; i < count_; ++i)
            for (std::size_t l = 0; l < LANES; ++l, from += sizeof(Host)) {
                Host element;
                std::memcpy(&element, from, sizeof(Host));
                lane(data_[i], l) = element;
            }
    }
    void write(void *array) {
        char *to = static_cast<char *>(array);
        for (std::size_t i = 0; i < count_; ++i)
            for (std::size_t l = 0; l < LANES; ++l, to += sizeof(Host)) {
                const Host element = static_cast<Host>(lane(data_[i], l));
                std::memcpy(to, &element, sizeof(Host));
            }
    }
};

}  // namespace pk

#endif  // PENSTOCK_CSIM_WORDS_H
