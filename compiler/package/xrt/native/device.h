// The accelerator on a device: one kernel object for each compute unit of the bitstream, and for each of these sets of
// buffers on the banks that its connectivity says, so that a set is filled while another is computed with.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_DEVICE_H
#define PENSTOCK_HOST_DEVICE_H

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>
#if __has_include(<xrt/experimental/xrt_xclbin.h>)
#include <xrt/experimental/xrt_xclbin.h>
#else
#include <experimental/xrt_xclbin.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "container.h"
#include "frames.h"
#include "schedule.h"

namespace penstock {

using Clock = std::chrono::steady_clock;

inline double microseconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
}

// What one inference took. The kernel's time runs from its start to the host's seeing its end.
struct Times {
    double to_device = 0.0;
    double kernel = 0.0;
    double from_device = 0.0;
    double whole = 0.0;
};

// XRT's own words with what was tried, as one of our failures.
template <typename Action>
auto attempt(const std::string &what, const std::string &hint, Action action) {
    try {
        return action();
    } catch (const Failure &) {
        throw;
    } catch (const std::exception &error) {
        throw Failure(BAD_DEVICE, what + ": " + error.what(), hint);
    }
}

class Device {
public:
    Device(std::size_t index, const std::string &file, const Design &design, const std::string &package,
           std::size_t sets, std::size_t timeout_seconds)
        : design_(design), timeout_(std::chrono::seconds(timeout_seconds)) {
        const xrt::xclbin bitstream = open_bitstream(file);
        find_units(bitstream, file);
        const std::string number = std::to_string(index);
        device_ = attempt("device " + number + " cannot be opened", "see `xbutil examine`, and source XRT's setup.sh",
                          [&] { return xrt::device(static_cast<unsigned>(index)); });
        const auto uuid =
            attempt(file + " cannot be loaded onto device " + number, "it must be linked for this device's platform",
                    [&] { return device_.load_xclbin(bitstream); });
        std::vector<Bytes> parameters;
        for (const Memory &memory : design.parameters) parameters.push_back(read_parameter(package, memory));
        for (const std::string &name : names_)
            attempt("compute unit " + name + " cannot be used", "is another program on the device?", [&] {
                add_unit(xrt::kernel(device_, uuid, design.top + ":{" + name + "}"), parameters, sets);
                return 0;
            });
    }

    const std::vector<std::string> &units() const { return names_; }

    // Sends the inputs and starts the unit. Inputs are by memory.
    void begin(Slot slot, const std::vector<const Bytes *> &inputs) {
        Set &set = units_[slot.unit].sets[slot.set];
        set.begun = Clock::now();
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            std::memcpy(set.inputs[i].map<char *>(), inputs[i]->data(), inputs[i]->size());
            set.inputs[i].sync(XCL_BO_SYNC_BO_TO_DEVICE);
        }
        set.started = Clock::now();
        set.run.start();
    }

    // Waits for the unit and fetches the outputs, which stay until the slot's next inference.
    Times end(Slot slot) {
        Set &set = units_[slot.unit].sets[slot.set];
        const auto state = set.run.wait(timeout_);
        const Clock::time_point ended = Clock::now();
        if (state != ERT_CMD_STATE_COMPLETED)
            throw Failure(BAD_DEVICE,
                          "compute unit " + names_[slot.unit] +
                              (state == ERT_CMD_STATE_TIMEOUT ? " did not end in time" : " failed") + " (XRT's state " +
                              std::to_string(static_cast<int>(state)) + ")",
                          "reset the device with `xbutil reset`, or allow more with --timeout");
        for (xrt::bo &buffer : set.outputs) buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
        const Clock::time_point fetched = Clock::now();
        return {microseconds(set.begun, set.started), microseconds(set.started, ended), microseconds(ended, fetched),
                microseconds(set.begun, fetched)};
    }

    // An output of the slot's last inference, as it lies in the accelerator's memory.
    const char *output(Slot slot, std::size_t index) {
        return units_[slot.unit].sets[slot.set].outputs[index].map<char *>();
    }

private:
    struct Set {
        xrt::run run;
        std::vector<xrt::bo> inputs;
        std::vector<xrt::bo> outputs;
        std::vector<xrt::bo> buffers;
        Clock::time_point begun;
        Clock::time_point started;
    };

    struct Unit {
        xrt::kernel kernel;
        std::vector<xrt::bo> parameters;
        std::vector<Set> sets;
    };

    static xrt::xclbin open_bitstream(const std::string &file) {
        check_container(file);
        return attempt(file + " cannot be read", "pass what v++ --package wrote", [&] { return xrt::xclbin(file); });
    }

    // The compute units of our kernel, whose arguments must be those of this package.
    void find_units(const xrt::xclbin &bitstream, const std::string &file) {
        std::string others;
        for (const auto &kernel : bitstream.get_kernels()) {
            if (kernel.get_name() != design_.top) {
                others += (others.empty() ? "" : ", ") + kernel.get_name();
                continue;
            }
            for (const auto &unit : kernel.get_cus()) {
                const std::string name = unit.get_name();
                names_.push_back(name.substr(name.find(':') + 1));
            }
            check_arguments(kernel, file);
        }
        if (names_.empty())
            throw Failure(
                BAD_DEVICE,
                file + " holds no kernel " + design_.top + " (it holds: " + (others.empty() ? "none" : others) + ")",
                "load the bitstream that was linked from this package");
    }

    void check_arguments(const xrt::xclbin::kernel &kernel, const std::string &file) const {
        const std::vector<Memory> memories = design_.all();
        const auto arguments = kernel.get_args();
        bool same = arguments.size() == memories.size();
        for (const Memory &memory : memories)
            same = same && std::any_of(arguments.begin(), arguments.end(), [&](const auto &argument) {
                       return static_cast<int>(argument.get_index()) == memory.position &&
                              argument.get_name() == memory.argument;
                   });
        if (!same)
            throw Failure(BAD_DEVICE, file + ": the arguments of " + design_.top + " are not those of this package",
                          "load the bitstream that was linked from this package");
    }

    xrt::bo allocate(const xrt::kernel &kernel, const Memory &memory) {
        const auto bank = attempt("argument " + memory.argument + " has no bank", "see link/connectivity.cfg",
                                  [&] { return kernel.group_id(memory.position); });
        return attempt(std::to_string(memory.bytes()) + " bytes for " + memory.name + " cannot be had on bank " +
                           std::to_string(bank),
                       "use fewer --sets, or spread the ports over more banks",
                       [&] { return xrt::bo(device_, memory.bytes(), static_cast<xrt::memory_group>(bank)); });
    }

    void add_unit(xrt::kernel kernel, const std::vector<Bytes> &parameters, std::size_t sets) {
        Unit unit;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            unit.parameters.push_back(allocate(kernel, design_.parameters[i]));
            std::memcpy(unit.parameters[i].map<char *>(), parameters[i].data(), parameters[i].size());
            unit.parameters[i].sync(XCL_BO_SYNC_BO_TO_DEVICE);
        }
        for (std::size_t number = 0; number < sets; ++number) {
            Set set;
            set.run = xrt::run(kernel);
            const auto add = [&](const std::vector<Memory> &memories, std::vector<xrt::bo> &buffers) {
                for (const Memory &memory : memories) {
                    buffers.push_back(allocate(kernel, memory));
                    set.run.set_arg(memory.position, buffers.back());
                }
            };
            add(design_.inputs, set.inputs);
            add(design_.outputs, set.outputs);
            add(design_.buffers, set.buffers);
            for (std::size_t i = 0; i < parameters.size(); ++i)
                set.run.set_arg(design_.parameters[i].position, unit.parameters[i]);
            unit.sets.push_back(std::move(set));
        }
        unit.kernel = std::move(kernel);
        units_.push_back(std::move(unit));
    }

    const Design &design_;
    std::chrono::milliseconds timeout_;
    std::vector<std::string> names_;
    xrt::device device_;
    std::vector<Unit> units_;
};

}  // namespace penstock

#endif  // PENSTOCK_HOST_DEVICE_H
