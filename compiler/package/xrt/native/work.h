// What is to be run and what must come out: the user's files, or the package's samples and held-out set.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_WORK_H
#define PENSTOCK_HOST_WORK_H

#include <string>
#include <vector>

#include "frames.h"
#include "options.h"

namespace penstock {

// By memory, then by frame: `inputs` as they lie in memory, `expected` as tensors. Of the last frames the answers may
// not be known.
struct Work {
    std::size_t frames = 1;
    std::vector<Frames> inputs;
    std::vector<Frames> expected;
};

inline void check_files(const std::vector<std::string> &files, const std::vector<Memory> &memories,
                        const std::string &option) {
    std::string names;
    std::size_t tensors = 0;  // which may lie in several memories each
    for (const Memory &memory : memories) {
        if (memory.stripe != 0) continue;
        names += (names.empty() ? "" : ", ") + memory.name;
        ++tensors;
    }
    if (files.size() == tensors) return;
    throw Failure(BAD_INPUT,
                  std::to_string(files.size()) + " files given by " + option + ", the accelerator has " +
                      std::to_string(tensors),
                  "pass one for each of: " + names);
}

inline std::vector<Frames> read_all(const std::vector<std::string> &files, const std::vector<Memory> &memories,
                                    bool exact) {
    std::vector<Frames> found;
    std::size_t read = 0;
    for (const Memory &memory : memories) {
        if (memory.stripe == 0) ++read;
        found.push_back(read_frames(files[read - 1], memory, exact));
    }
    return found;
}

inline std::string sample_of(const std::string &package, const char *kind, const Memory &memory) {
    return package + "/model/samples/" + kind + "_" + std::to_string(memory.index) + ".npy";
}

inline bool has_expected(const std::string &package, const Design &design) {
    for (const Memory &memory : design.outputs)
        if (!exists(sample_of(package, "expected", memory))) return false;
    return !design.outputs.empty();
}

// The held-out examples behind the samples, where they are frames of this accelerator: one input, one output, and
// nothing of the model that runs on the host.
inline void add_evaluation(Work &work, const Design &design, const std::string &package) {
    const std::string folder = package + "/model/evaluation/";
    const bool plain = design.inputs.size() == 1 && design.outputs.size() == 1 && !exists(package + "/host/graph.json");
    if (!plain || work.expected.empty() || !exists(folder + "inputs.npy") || !exists(folder + "expected.npy")) return;
    const Memory &input = design.inputs.front(), &output = design.outputs.front();
    const Array rows = read_npy(folder + "inputs.npy"), answers = read_npy(folder + "expected.npy");
    if (rows.shape.empty() || count_of(rows.shape) != rows.shape[0] * count_of(input.valid))
        return;  // a batch of several rows
    const Frames frames = frames_of(rows, input, false, folder + "inputs.npy");
    const Frames expected = cut(to_elements(answers, output, true, folder + "expected.npy"), output);
    work.inputs.front().insert(work.inputs.front().end(), frames.begin(), frames.end());
    work.expected.front().insert(work.expected.front().end(), expected.begin(), expected.end());
}

inline Work collect_work(const Design &design, const Options &options) {
    Work work;
    if (!options.inputs.empty()) {
        check_files(options.inputs, design.inputs, "--input");
        work.inputs = read_all(options.inputs, design.inputs, options.exact);
        if (!options.expected.empty()) {
            check_files(options.expected, design.outputs, "--expected");
            work.expected = read_all(options.expected, design.outputs, true);
        } else if (options.verify) {
            throw Failure(BAD_INPUT, "--verify knows no answers to these inputs",
                          "pass them by --expected, or leave --input away");
        }
    } else {
        if (!options.expected.empty()) throw Failure(BAD_INPUT, "--expected is for --input", "pass both, or neither");
        for (const Memory &memory : design.inputs)
            work.inputs.push_back(read_frames(sample_of(options.package, "input", memory), memory, false));
        if (has_expected(options.package, design))
            for (const Memory &memory : design.outputs)
                work.expected.push_back(read_frames(sample_of(options.package, "expected", memory), memory, true));
        else if (options.verify)
            throw Failure(BAD_INPUT, "this package stores no answers", "pass --input and --expected");
        add_evaluation(work, design, options.package);
    }
    if (!options.outputs.empty()) check_files(options.outputs, design.outputs, "--output");
    if (!work.inputs.empty()) work.frames = work.inputs.front().size();
    for (std::size_t i = 0; i < work.inputs.size(); ++i) {
        if (work.inputs[i].size() != work.frames)
            throw Failure(BAD_INPUT,
                          design.inputs[i].name + " has " + std::to_string(work.inputs[i].size()) + " frames, " +
                              design.inputs.front().name + " has " + std::to_string(work.frames),
                          "pass as many of each input");
        work.inputs[i] = packed(std::move(work.inputs[i]), design.inputs[i]);
    }
    return work;
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_WORK_H
