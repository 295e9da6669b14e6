// What the accelerator's memories are, and how a tensor lies in one: tile after tile, each a row of words as wide as
// the port. A word of lanes is as long as its elements are on the host: HLS pads no port by itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_MEMORY_H
#define PENSTOCK_HOST_MEMORY_H

#include <cstring>
#include <string>
#include <vector>

#include "element.h"

namespace penstock {

using Bytes = std::vector<char>;

// The kernel's argument at `position`. `index` is its place among the model's inputs or outputs; `model` is the shape
// that the model gives it. `valid` is how much of `shape` the tensor fills: zeros lie behind an input. Where there are
// scales the host quantises: real value = scale * integer, by columns.
struct Memory {
    std::string name;
    std::string argument;
    int position;
    std::size_t index;
    Element element;
    Shape shape;
    Shape valid;
    Shape tile;  // empty: plain C order
    Shape word;
    Shape model;
    std::vector<float> scale;
    std::string file;
    std::size_t stripes;  // so many memories share the tensor; this one has each so many-th element, from `stripe` on
    std::size_t stripe;
    std::size_t room;  // so many elements fit in a word, zeros behind its own; 0: these are all

    std::size_t lanes() const { return room ? room : count_of(word); }
    std::size_t bytes() const {
        const std::size_t elements = tile.empty() ? count_of(shape) : count_of(shape) / count_of(word) * lanes();
        return elements / stripes * bytes_of(element);
    }
    std::size_t tensor_bytes() const { return count_of(valid) * bytes_of(element); }
};

// A package's accelerator. `buffers` pass between its kernels; the host only gives them room.
struct Design {
    std::string name;
    std::string top;
    std::vector<Memory> inputs;
    std::vector<Memory> parameters;
    std::vector<Memory> outputs;
    std::vector<Memory> buffers;

    std::vector<Memory> all() const {
        std::vector<Memory> found;
        for (const auto *part : {&inputs, &parameters, &outputs, &buffers})
            found.insert(found.end(), part->begin(), part->end());
        return found;
    }
};

const std::size_t NOWHERE = static_cast<std::size_t>(-1);

// Where each element of the memory is found in the tensor, NOWHERE behind its end; empty if they are in the same order.
inline std::vector<std::size_t> order_of(const Memory &memory) {
    if (memory.tile.empty() && memory.valid == memory.shape) return {};
    const std::size_t rank = memory.shape.size();
    Shape extents(3 * rank, 1), steps(3 * rank, 1);
    for (std::size_t dim = 0; dim < rank; ++dim) {
        const std::size_t tile = memory.tile.empty() ? 1 : memory.tile[dim],
                          word = memory.tile.empty() ? 1 : memory.word[dim];
        extents[dim] = memory.shape[dim] / tile;
        extents[rank + dim] = tile / word;
        extents[2 * rank + dim] = word;
        steps[dim] = tile;
        steps[rank + dim] = word;
    }
    std::vector<std::size_t> order(count_of(memory.shape));
    Shape counter(3 * rank, 0);
    for (std::size_t &place : order) {
        place = 0;
        for (std::size_t dim = 0; dim < rank && place != NOWHERE; ++dim) {
            std::size_t at = 0;
            for (std::size_t level = dim; level < 3 * rank; level += rank) at += counter[level] * steps[level];
            place = at < memory.valid[dim] ? place * memory.valid[dim] + at : NOWHERE;
        }
        for (std::size_t level = 3 * rank; level-- > 0;) {
            if (++counter[level] < extents[level]) break;
            counter[level] = 0;
        }
    }
    if (memory.room) {
        const std::size_t own = count_of(memory.word);
        std::vector<std::size_t> wide;
        for (std::size_t at = 0; at < order.size(); at += own) {
            wide.insert(wide.end(), order.begin() + at, order.begin() + at + own);
            wide.insert(wide.end(), memory.room - own, NOWHERE);
        }
        order.swap(wide);
    }
    if (memory.stripes == 1) return order;
    std::vector<std::size_t> share;
    for (std::size_t at = memory.stripe; at < order.size(); at += memory.stripes) share.push_back(order[at]);
    return share;
}

// Tensors to and from the order of one memory; the order is worked out once.
class Packing {
public:
    explicit Packing(const Memory &memory)
        : size_(bytes_of(memory.element)),
          bytes_(memory.bytes()),
          tensor_bytes_(memory.tensor_bytes()),
          order_(order_of(memory)) {}

    Bytes pack(const char *tensor) const {
        if (order_.empty()) return Bytes(tensor, tensor + bytes_);
        Bytes memory(bytes_, '\0');
        for (std::size_t place = 0; place < order_.size(); ++place)
            if (order_[place] != NOWHERE) std::memcpy(&memory[place * size_], tensor + order_[place] * size_, size_);
        return memory;
    }

    Bytes unpack(const char *memory) const {
        if (order_.empty()) return Bytes(memory, memory + bytes_);
        Bytes tensor(tensor_bytes_);
        for (std::size_t place = 0; place < order_.size(); ++place)
            if (order_[place] != NOWHERE) std::memcpy(&tensor[order_[place] * size_], memory + place * size_, size_);
        return tensor;
    }

private:
    std::size_t size_;
    std::size_t bytes_;
    std::size_t tensor_bytes_;
    std::vector<std::size_t> order_;
};

}  // namespace penstock

#endif  // PENSTOCK_HOST_MEMORY_H
