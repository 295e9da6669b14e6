// Runs a verilated core with data from files: streams with stalls by seed, memories as arrays, several frames.
// Cycle 0 is the first one after reset; in it the first frame's start is given.
#include "harness.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

namespace penstock {
namespace {

typedef std::vector<unsigned char> Bytes;
const size_t most_times = 1 << 26;

Bytes read_file(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) {
        std::cerr << "cannot read " << name << "\n";
        std::exit(2);
    }
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

void write_file(const std::string& name, const void* data, size_t bytes) {
    std::ofstream file(name, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    if (!file.flush()) {
        std::cerr << "cannot write " << name << "\n";
        std::exit(2);
    }
}

uint64_t value(const Signal& signal) {
    uint64_t result = 0;
    std::memcpy(&result, signal.at, signal.bytes < 8 ? signal.bytes : 8);
    return result;
}

// Pauses of random length, drawn anew for each port: from rare and short to frequent and long.
struct Stall {
    uint64_t state = 0;
    unsigned chance = 0, longest = 1, left = 0;

    void seed(uint64_t number) {
        state = number * 0x9e3779b97f4a7c15ull + 1;
        const unsigned chances[] = {0, 8, 48, 128}, lengths[] = {1, 3, 12, 40};
        chance = chances[next() & 3];
        longest = lengths[next() & 3];
    }
    uint64_t next() {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state >> 11;
    }
    bool now() {
        if (!chance) return false;
        if (left) {
            --left;
            return true;
        }
        if ((next() & 255) >= chance) return false;
        left = static_cast<unsigned>(next() % longest);
        return true;
    }
};

struct Store {  // one external memory; several ports may share it
    Bytes cells, frames, snapshots;
    std::string output;
    size_t words = 0, stride = 1;
};

struct Activity {
    std::string input, output, times_file;
    size_t memory = 0;  // the store's number, from 1; 0 for a stream
    Store* store = nullptr;
    Bytes tokens;
    uint64_t expected = 0, position = 0;
    bool offered = false;
    Stall stall;
    uint64_t count = 0, first = 0, last = 0, outside = 0;
    std::vector<uint64_t> times;
};

struct Run {
    Core& core;
    std::vector<Activity> ports;
    std::vector<Store> stores;
    uint64_t frames = 1, seed = 0, idle = 100000, limit = 1ull << 40, drain = 64;
    bool overlap = true, pulse = false;
    std::string result = "result.json";
    uint64_t cycle = 0, moved = 0, started = 0;
    std::vector<uint64_t> done, addresses;
    double seconds = 0;
    std::vector<size_t> answers;
    const char* verdict = "done";

    explicit Run(Core& c) : core(c), ports(c.ports.size()) {}

    void read_plan(const char* name);
    void load_frame(uint64_t frame);
    void begin_cycle();
    void end_cycle();
    void note(Activity& port);
    bool complete() const;
    void go();
    void write();
};

void Run::read_plan(const char* name) {
    std::ifstream plan(name);
    std::string key;
    size_t index = 0;
    while (plan >> key) {
        if (key == "frames") plan >> frames;
        else if (key == "overlap") plan >> overlap;
        else if (key == "seed") plan >> seed;
        else if (key == "idle") plan >> idle;
        else if (key == "limit") plan >> limit;
        else if (key == "drain") plan >> drain;
        else if (key == "result") plan >> result;
        else if (key == "store") {  // words, bytes a word, input file, output file
            Store store;
            std::string input;
            plan >> store.words >> store.stride >> input >> store.output;
            store.cells.assign(store.words * store.stride, 0);
            if (input != "-") store.frames = read_file(input);
            stores.push_back(store);
        } else if (key == "stream") {  // tokens of all frames, data file, file for their cycles
            Activity& port = ports[index++];
            std::string file;
            plan >> port.expected >> file >> port.times_file;
            if (core.ports[index - 1].kind == stream_in) port.tokens = read_file(file);
            else port.output = file;
        } else if (key == "memory") {  // which store, from 1; file for the cycles of writes
            Activity& port = ports[index++];
            plan >> port.memory >> port.times_file;
        } else {
            std::cerr << "the plan says " << key << "\n";
            std::exit(2);
        }
    }
    for (size_t i = 0; i < ports.size(); ++i) {
        Activity& port = ports[i];
        if (port.memory) port.store = &stores[port.memory - 1];
        if (seed) port.stall.seed(seed * 1000003 + i);
        if (core.ports[i].kind == stream_out) port.tokens.assign(port.expected * core.ports[i].data.bytes, 0);
    }
}

void Run::load_frame(uint64_t frame) {
    for (Store& store : stores) {
        const size_t bytes = store.cells.size();
        if (store.frames.size() >= (frame + 1) * bytes && bytes)
            std::memcpy(store.cells.data(), store.frames.data() + frame * bytes, bytes);
    }
}

void Run::note(Activity& port) {
    if (!port.count) port.first = cycle;
    port.last = cycle;
    ++port.count;
    moved = cycle;
    if (!port.times_file.empty() && port.times_file != "-" && port.times.size() < most_times)
        port.times.push_back(cycle);
}

// With the clock low: starts, tokens and readiness for this cycle.
void Run::begin_cycle() {
    const bool next = started < frames && (overlap ? !pulse : started == done.size());
    if (next && !overlap) load_frame(started);
    if (next) ++started, moved = cycle;
    pulse = next;  // a pulse lasts one cycle, and one without follows
    *core.start.at = next;
    for (size_t i = 0; i < ports.size(); ++i) {
        Activity& port = ports[i];
        const Port& pins = core.ports[i];
        if (pins.kind == stream_in) {
            if (!port.offered && port.position < port.expected && !port.stall.now()) {
                std::memcpy(pins.data.at, &port.tokens[port.position * pins.data.bytes], pins.data.bytes);
                port.offered = true;  // what is offered stays until it is taken
            }
            *pins.strobe.at = port.offered;
        } else if (pins.kind == stream_out) {
            *pins.other.at = !port.stall.now();
        }
    }
    *core.clk.at = 0;
    core.eval(core.model);
}

// What passes in this cycle, then the clock's edge, after which memories answer.
void Run::end_cycle() {
    answers.clear(), addresses.clear();
    for (size_t i = 0; i < ports.size(); ++i) {
        Activity& port = ports[i];
        const Port& pins = core.ports[i];
        if (!*pins.strobe.at) continue;
        if (pins.kind == stream_in || pins.kind == stream_out) {
            if (!*pins.other.at) continue;
            if (pins.kind == stream_in) port.offered = false, ++port.position;
            else if (port.count < port.expected)
                std::memcpy(&port.tokens[port.count * pins.data.bytes], pins.data.at, pins.data.bytes);
            note(port);
            continue;
        }
        note(port);
        const uint64_t address = value(pins.other);
        if (address >= port.store->words) ++port.outside;
        else if (pins.kind == memory_read) answers.push_back(i), addresses.push_back(address);
        else std::memcpy(&port.store->cells[address * port.store->stride], pins.data.at, pins.data.bytes);
    }
    const bool ended = *core.done.at;
    *core.clk.at = 1;
    core.eval(core.model);
    for (size_t k = 0; k < answers.size(); ++k) {
        const Port& pins = core.ports[answers[k]];
        const Store& store = *ports[answers[k]].store;
        std::memcpy(pins.data.at, &store.cells[addresses[k] * store.stride], pins.data.bytes);
    }
    if (ended) {
        done.push_back(cycle);
        moved = cycle;
        for (Store& store : stores)
            if (store.output != "-" && !overlap)
                store.snapshots.insert(store.snapshots.end(), store.cells.begin(), store.cells.end());
    }
    ++cycle;
}

bool Run::complete() const {
    if (done.size() < frames) return false;
    for (size_t i = 0; i < ports.size(); ++i)
        if (ports[i].count < ports[i].expected) return false;
    return true;
}

void Run::go() {
    *core.rst.at = 1;
    *core.start.at = 0;
    for (int i = 0; i < 8; ++i) {
        *core.clk.at = i & 1;
        core.eval(core.model);
    }
    *core.rst.at = 0;
    load_frame(0);
    while (!complete()) {
        if (cycle - moved > idle) {
            verdict = "idle";
            break;
        }
        if (cycle >= limit) {
            verdict = "limit";
            break;
        }
        begin_cycle();
        end_cycle();
    }
    if (!std::strcmp(verdict, "done"))
        for (uint64_t i = 0; i < drain; ++i) begin_cycle(), end_cycle();
    core.finish(core.model);
}

void Run::write() {
    std::ofstream file(result);
    file << "{\"verdict\": \"" << verdict << "\", \"cycles\": " << cycle << ", \"seconds\": " << seconds
         << ", \"done\": [";
    for (size_t i = 0; i < done.size(); ++i) file << (i ? ", " : "") << done[i];
    file << "], \"ports\": [";
    for (size_t i = 0; i < ports.size(); ++i) {
        const Activity& port = ports[i];
        const Port& pins = core.ports[i];
        file << (i ? ", " : "") << "{\"count\": " << port.count << ", \"first\": " << port.first
             << ", \"last\": " << port.last << ", \"outside\": " << port.outside
             << ", \"strobe\": " << int(*pins.strobe.at)
             << ", \"ready\": " << (port.store ? 0 : int(*pins.other.at)) << "}";
        if (!port.output.empty()) write_file(port.output, port.tokens.data(), port.tokens.size());
        if (!port.times_file.empty() && port.times_file != "-")
            write_file(port.times_file, port.times.data(), port.times.size() * 8);
    }
    file << "]}\n";
    for (Store& store : stores)
        if (store.output != "-") {
            Bytes& kept = overlap ? store.cells : store.snapshots;
            write_file(store.output, kept.data(), kept.size());
        }
    if (!file.flush()) std::exit(2);
}

}  // namespace

int run(Core& core, const char* plan) {
    Run one(core);
    one.read_plan(plan);
    const auto began = std::chrono::steady_clock::now();
    one.go();
    one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    one.write();
    std::cout.flush();
    return 0;
}

}  // namespace penstock
