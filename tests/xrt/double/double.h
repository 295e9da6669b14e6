// A test double of the part of XRT's native C++ API that the host program uses. Never installed, never in a package.
// Behind its bitstream's container there is a text that names the kernel, its units, arguments and banks, and the C
// simulation of a design as a shared library, which stands in for the hardware. It is stricter than XRT: host and
// device have memories of their own, so that a transfer that is forgotten shows, and a buffer on another bank than the
// unit's is refused.
#ifndef PENSTOCK_TESTS_XRT_DOUBLE_H
#define PENSTOCK_TESTS_XRT_DOUBLE_H

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

enum xclBOSyncDirection { XCL_BO_SYNC_BO_TO_DEVICE = 0, XCL_BO_SYNC_BO_FROM_DEVICE = 1 };
enum ert_cmd_state {
    ERT_CMD_STATE_NEW = 1,
    ERT_CMD_STATE_COMPLETED = 4,
    ERT_CMD_STATE_ERROR = 5,
    ERT_CMD_STATE_TIMEOUT = 8
};

namespace xrt_double {

struct Argument {
    std::string name;
    int index;
    std::string side;  // input, parameter, output or buffer
    std::size_t place;
};

using Function = int (*)(const void *const *, const void *const *, void *const *);

// What the text says. `trouble`: hang, fail, or nothing.
struct Text {
    std::string kernel, library, trouble;
    std::vector<std::string> units;
    std::vector<Argument> arguments;
    std::map<std::string, std::map<int, int>> banks;
    int milliseconds = 0;
};

inline Text read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::string line, word;
    Text text;
    while (line != "xrt test double")
        if (!std::getline(file, line)) throw std::runtime_error("Invalid xclbin");
    while (std::getline(file, line)) {
        std::istringstream words(line);
        words >> word;
        if (word == "kernel") words >> text.kernel;
        else if (word == "library") words >> text.library;
        else if (word == "trouble") words >> text.trouble;
        else if (word == "milliseconds") words >> text.milliseconds;
        else if (word == "unit") text.units.emplace_back(), words >> text.units.back();
        else if (word == "argument") {
            Argument a;
            words >> a.name >> a.index >> a.side >> a.place;
            text.arguments.push_back(a);
        } else if (word == "bank") {
            std::string unit;
            int index = 0, bank = 0;
            words >> unit >> index >> bank;
            text.banks[unit][index] = bank;
        }
    }
    return text;
}

// One line an event, in the order of time, into the file that PENSTOCK_XRT_DOUBLE_LOG names.
inline void note(const std::string &event) {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> guard(mutex);
    if (const char *path = std::getenv("PENSTOCK_XRT_DOUBLE_LOG")) std::ofstream(path, std::ios::app) << event << "\n";
}

}  // namespace xrt_double

namespace xrt {

using memory_group = std::uint32_t;
using uuid = std::string;

class xclbin {
public:
    class ip {
    public:
        explicit ip(std::string name) : name_(std::move(name)) {}
        std::string get_name() const { return name_; }

    private:
        std::string name_;
    };
    class arg {
    public:
        explicit arg(xrt_double::Argument argument) : argument_(std::move(argument)) {}
        std::string get_name() const { return argument_.name; }
        std::size_t get_index() const { return static_cast<std::size_t>(argument_.index); }

    private:
        xrt_double::Argument argument_;
    };
    class kernel {
    public:
        explicit kernel(const xrt_double::Text &text) : text_(text) {}
        std::string get_name() const { return text_.kernel; }
        std::vector<ip> get_cus() const {
            std::vector<ip> found;
            for (const auto &unit : text_.units) found.emplace_back(text_.kernel + ":" + unit);
            return found;
        }
        std::vector<arg> get_args() const { return {text_.arguments.begin(), text_.arguments.end()}; }

    private:
        xrt_double::Text text_;
    };
    explicit xclbin(const std::string &path) : text_(std::make_shared<xrt_double::Text>(xrt_double::read(path))) {}
    std::vector<kernel> get_kernels() const { return {kernel(*text_)}; }
    std::shared_ptr<xrt_double::Text> text() const { return text_; }

private:
    std::shared_ptr<xrt_double::Text> text_;
};

class device {
public:
    device() = default;
    explicit device(unsigned index) {
        if (index > 0) throw std::runtime_error("Could not open device with index '" + std::to_string(index) + "'");
    }
    uuid load_xclbin(const xclbin &file) {
        text_ = file.text();
        return "loaded";
    }
    const std::shared_ptr<xrt_double::Text> &text() const { return text_; }

private:
    std::shared_ptr<xrt_double::Text> text_;
};

class bo {
public:
    bo() = default;
    bo(const device &, std::size_t bytes, memory_group group) : state_(std::make_shared<State>()) {
        state_->host.resize(bytes, '\x55');
        state_->device.resize(bytes, '\xaa');
        state_->group = group;
    }
    template <typename T>
    T map() {
        return reinterpret_cast<T>(state_->host.data());
    }
    void sync(xclBOSyncDirection direction) {
        const bool out = direction == XCL_BO_SYNC_BO_TO_DEVICE;
        (out ? state_->device : state_->host) = out ? state_->host : state_->device;
        xrt_double::note((out ? "send " : "fetch ") + std::to_string(state_->group));
    }
    char *on_device() const { return state_->device.data(); }
    memory_group group() const { return state_->group; }

private:
    struct State {
        std::vector<char> host, device;
        memory_group group = 0;
    };
    std::shared_ptr<State> state_;
};

class kernel {
public:
    kernel() = default;
    kernel(const device &device, const uuid &, const std::string &name) : state_(std::make_shared<State>()) {
        state_->text = device.text();
        for (const auto &unit : state_->text->units)
            if (name == state_->text->kernel + ":{" + unit + "}") state_->name = unit;
        if (state_->name.empty()) throw std::runtime_error("No compute unit " + name);
        void *library = dlopen(state_->text->library.c_str(), RTLD_NOW);
        state_->function = library ? reinterpret_cast<xrt_double::Function>(dlsym(library, "penstock_csim")) : nullptr;
        if (!state_->function) throw std::runtime_error("no C simulation");
    }
    int group_id(int argument) const { return state_->text->banks.at(state_->name).at(argument); }

private:
    friend class run;
    struct State {
        std::shared_ptr<xrt_double::Text> text;
        std::string name;
        xrt_double::Function function = nullptr;
        std::shared_future<void> last;  // a unit computes one run after the other
    };
    std::shared_ptr<State> state_;
};

class run {
public:
    run() = default;
    explicit run(const kernel &kernel) : state_(std::make_shared<State>()) { state_->unit = kernel.state_; }
    void set_arg(int index, const bo &buffer) {
        const auto wanted = state_->unit->text->banks.at(state_->unit->name).at(index);
        if (static_cast<int>(buffer.group()) != wanted)
            throw std::runtime_error("the buffer is on another bank than the argument");
        state_->buffers[index] = buffer;
    }
    void start() {
        for (const auto &argument : state_->unit->text->arguments)
            if (!state_->buffers.count(argument.index))
                throw std::runtime_error("argument " + argument.name + " is not set");
        xrt_double::note("start " + state_->unit->name);
        const auto state = state_;
        state_->done = std::async(std::launch::async, [state, before = state_->unit->last] {
            if (before.valid()) before.wait();
            state->compute();
        });
        state_->unit->last = state_->done;
    }
    ert_cmd_state wait(const std::chrono::milliseconds &timeout) const {
        if (state_->done.wait_for(timeout) != std::future_status::ready) return ERT_CMD_STATE_TIMEOUT;
        return state_->unit->text->trouble == "fail" ? ERT_CMD_STATE_ERROR : ERT_CMD_STATE_COMPLETED;
    }

private:
    struct State {
        std::shared_ptr<kernel::State> unit;
        std::map<int, bo> buffers;
        std::shared_future<void> done;

        void compute() {
            static std::mutex one_at_a_time;  // the C simulation keeps its memories in static storage
            const auto &text = *unit->text;
            std::map<std::string, std::vector<void *>> sides;
            for (const auto &argument : text.arguments) {
                auto &side = sides[argument.side];
                if (side.size() <= argument.place) side.resize(argument.place + 1);
                side[argument.place] = buffers.at(argument.index).on_device();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(text.trouble == "hang" ? 1500 : text.milliseconds));
            {
                const std::lock_guard<std::mutex> guard(one_at_a_time);
                unit->function(sides["input"].data(), sides["parameter"].data(), sides["output"].data());
            }
            xrt_double::note("done " + unit->name);
        }
    };
    std::shared_ptr<State> state_;
};

}  // namespace xrt

#endif  // PENSTOCK_TESTS_XRT_DOUBLE_H
