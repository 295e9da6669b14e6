// The command line of the host.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_OPTIONS_H
#define PENSTOCK_HOST_OPTIONS_H

#include <cstddef>
#include <string>
#include <vector>

#include "failure.h"

namespace penstock {

const char USAGE[] =
    "Runs the accelerator of this package on an AMD device through XRT.\n"
    "\n"
    "  --verify           compare every answer with the package's stored ones\n"
    "  --input FILE       an input, .npy or raw; once for each input (default: the package's samples)\n"
    "  --expected FILE    what --input must give, once for each output; implies --verify\n"
    "  --output FILE      write the answers as .npy; once for each output\n"
    "  --exact            inputs and outputs are the accelerator's own numbers: do not quantise\n"
    "  --tolerance SHARE  what floats may be off, of the largest expected value (default 1e-4); integers: nothing\n"
    "  --repeat N         run every frame N times, and N inferences alone for their latency (default 1)\n"
    "  --sets N           sets of buffers for each compute unit (default 2; 1 overlaps nothing)\n"
    "  --device N         which device (default 0)\n"
    "  --xclbin FILE      the bitstream (default: bitstream/<kernel>.xclbin of the package)\n"
    "  --package FOLDER   the package (default: the one that this program was built in)\n"
    "  --timeout SECONDS  how long one inference may take (default 60)\n"
    "  --json             print one JSON object\n"
    "  --help             print this\n"
    "\n"
    "Exit codes: 0 done, 1 an answer is wrong, 2 the input or the package, 3 the device or the bitstream.\n";

struct Options {
    std::vector<std::string> inputs;
    std::vector<std::string> expected;
    std::vector<std::string> outputs;
    std::string package;
    std::string xclbin;
    double tolerance = 1e-4;
    std::size_t repeat = 1;
    std::size_t sets = 2;
    std::size_t device = 0;
    std::size_t timeout = 60;
    bool verify = false;
    bool exact = false;
    bool json = false;
    bool help = false;
};

inline double parse_number(const std::string &option, const std::string &text, double least, double most) {
    std::size_t end = 0;
    double value = 0.0;
    try {
        value = std::stod(text, &end);
    } catch (const std::exception &) {
        end = 0;
    }
    if (end == 0 || end != text.size() || !(value >= least && value <= most))
        throw Failure(BAD_INPUT, option + " cannot be " + text,
                      "pass a number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

inline std::size_t parse_count(const std::string &option, const std::string &text, std::size_t least,
                               std::size_t most) {
    const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t value = digits ? static_cast<std::size_t>(std::stoul(text)) : most + 1;
    if (value < least || value > most)
        throw Failure(BAD_INPUT, option + " cannot be " + text,
                      "pass a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

inline Options parse_options(const std::vector<std::string> &words, const std::string &package) {
    Options options;
    options.package = package;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string &word = words[i];
        const auto value = [&]() -> const std::string & {
            if (i + 1 >= words.size()) throw Failure(BAD_INPUT, word + " needs a value", "see --help");
            return words[++i];
        };
        if (word == "--verify") options.verify = true;
        else if (word == "--exact") options.exact = true;
        else if (word == "--json") options.json = true;
        else if (word == "--help" || word == "-h") options.help = true;
        else if (word == "--input") options.inputs.push_back(value());
        else if (word == "--expected") options.expected.push_back(value());
        else if (word == "--output") options.outputs.push_back(value());
        else if (word == "--package") options.package = value();
        else if (word == "--xclbin") options.xclbin = value();
        else if (word == "--tolerance") options.tolerance = parse_number(word, value(), 0.0, 1.0);
        else if (word == "--repeat") options.repeat = parse_count(word, value(), 1, 100000000);
        else if (word == "--sets") options.sets = parse_count(word, value(), 1, 64);
        else if (word == "--device") options.device = parse_count(word, value(), 0, 1023);
        else if (word == "--timeout") options.timeout = parse_count(word, value(), 1, 1000000);
        else throw Failure(BAD_INPUT, "there is no option " + word, "see --help");
    }
    options.verify = options.verify || !options.expected.empty();
    return options;
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_OPTIONS_H
