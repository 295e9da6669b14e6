// What the harness needs to know of a verilated core: its signals as plain memory, and how to step it.
#ifndef PENSTOCK_HARNESS_H
#define PENSTOCK_HARNESS_H
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

enum Kind { stream_in, stream_out, memory_read, memory_write };

// Verilator keeps a signal as 1, 2, 4 or 8 bytes, or as 32-bit words, low bits first; unused bits are 0.
struct Signal {
    unsigned char* at;
    size_t bytes;
};

struct Port {
    const char* name;
    Kind kind;
    Signal data;     // tdata, rdata or wdata
    Signal strobe;   // tvalid, re or we
    Signal other;    // tready or addr
};

struct Core {
    void* model;
    void (*eval)(void*);
    void (*finish)(void*);
    Signal clk, rst, start, done;
    std::vector<Port> ports;
};

template <class T> Signal signal(T& value) {
    return {reinterpret_cast<unsigned char*>(&value), sizeof(T)};
}

int run(Core& core, const char* plan);

}  // namespace penstock
#endif
