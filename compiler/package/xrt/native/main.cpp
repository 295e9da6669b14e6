// Runs a Penstock accelerator on an AMD device. `penstock_host --help` lists what it can do.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>

#include "design.h"
#include "device.h"
#include "result.h"
#include "work.h"

#ifndef PENSTOCK_PACKAGE
#define PENSTOCK_PACKAGE "."
#endif

namespace penstock {

std::vector<const Bytes *> inputs_of(const Work &work, std::size_t inference) {
    std::vector<const Bytes *> found;
    for (const Frames &frames : work.inputs) found.push_back(&frames[inference % work.frames]);
    return found;
}

// Every frame `repeat` times over all units and sets; answers are compared and, of the first round, kept.
std::vector<Frames> run_all(Device &device, const Design &design, const Work &work, const Options &options,
                            Result &result) {
    std::vector<Frames> answers(design.outputs.size());
    const std::size_t units = device.units().size();
    const std::vector<Packing> packings(design.outputs.begin(), design.outputs.end());
    const auto end = [&](std::size_t inference) {
        const Slot slot = slot_of(inference, units, options.sets);
        const std::size_t frame = inference % work.frames;
        device.end(slot);
        bool checked = false;
        for (std::size_t i = 0; i < design.outputs.size(); ++i) {
            const bool known = options.verify && frame < work.expected[i].size();
            const bool kept = !options.outputs.empty() && inference < work.frames;
            if (!known && !kept) continue;
            Bytes output = packings[i].unpack(device.output(slot, i));
            if (known)
                result.comparison.add(
                    compare(output, work.expected[i][frame], design.outputs[i].element, options.tolerance));
            if (kept) answers[i].push_back(std::move(output));
            checked = checked || known;
        }
        if (checked) ++result.checked;
    };
    result.inferences = work.frames * options.repeat;
    const Clock::time_point begun = Clock::now();
    run_overlapped(
        result.inferences, units, options.sets,
        [&](std::size_t inference) {
            device.begin(slot_of(inference, units, options.sets), inputs_of(work, inference));
        },
        end);
    result.seconds = microseconds(begun, Clock::now()) / 1e6;
    return answers;
}

// One inference at a time on the first unit, which the runs before have warmed up.
void time_alone(Device &device, const Work &work, const Options &options, Result &result) {
    std::vector<double> whole, to_device, kernel, from_device;
    for (std::size_t inference = 0; inference < options.repeat; ++inference) {
        device.begin({0, 0}, inputs_of(work, inference));
        const Times times = device.end({0, 0});
        whole.push_back(times.whole);
        to_device.push_back(times.to_device);
        kernel.push_back(times.kernel);
        from_device.push_back(times.from_device);
    }
    result.latency = spread_of(whole);
    result.to_device = spread_of(to_device);
    result.kernel_time = spread_of(kernel);
    result.from_device = spread_of(from_device);
}

int run(const Options &options) {
    const Design accelerator = make_design();
    const Work work = collect_work(accelerator, options);
    Result result;
    result.xclbin =
        options.xclbin.empty() ? options.package + "/bitstream/" + accelerator.top + ".xclbin" : options.xclbin;
    Device device(options.device, result.xclbin, accelerator, options.package, options.sets, options.timeout);
    const char *mode = std::getenv("XCL_EMULATION_MODE");
    result.emulated = mode != nullptr && *mode != '\0';
    result.design = accelerator.name;
    result.kernel = accelerator.top;
    result.units = device.units();
    result.device = options.device;
    result.sets = options.sets;
    result.tolerance = options.tolerance;
    result.verified = options.verify;
    const std::vector<Frames> answers = attempt("the accelerator stopped", "reset the device with `xbutil reset`",
                                                [&] { return run_all(device, accelerator, work, options, result); });
    if (!result.emulated)
        attempt("the accelerator stopped", "reset the device with `xbutil reset`", [&] {
            time_alone(device, work, options, result);
            return 0;
        });
    for (std::size_t i = 0; i < options.outputs.size(); ++i)
        write_npy(options.outputs[i], answers_of(answers[i], accelerator.outputs[i], options.exact));
    std::cout << (options.json ? json_of(result) : text_of(result));
    return result.ok() ? DONE : DIFFERENT;
}

}  // namespace penstock

int main(int argc, char **argv) {
    try {
        const auto options = penstock::parse_options({argv + 1, argv + argc}, PENSTOCK_PACKAGE);
        if (options.help) {
            std::cout << penstock::USAGE;
            return penstock::DONE;
        }
        return penstock::run(options);
    } catch (const penstock::Failure &failure) {
        std::cerr << "error: " << failure.what() << "\n";
        return failure.code();
    } catch (const std::exception &error) {
        std::cerr << "error: " << error.what() << " - please report it\n";
        return penstock::BAD_INPUT;
    }
}
