// The one error of the host: what is wrong, what to do about it, and the exit code that says whose fault it is.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_FAILURE_H
#define PENSTOCK_HOST_FAILURE_H

#include <stdexcept>
#include <string>

namespace penstock {

enum ExitCode { DONE = 0, DIFFERENT = 1, BAD_INPUT = 2, BAD_DEVICE = 3 };

class Failure : public std::runtime_error {
public:
    Failure(ExitCode code, const std::string &what, const std::string &hint)
        : std::runtime_error(what + " - " + hint), code_(code) {}
    ExitCode code() const { return code_; }

private:
    ExitCode code_;
};

}  // namespace penstock

#endif  // PENSTOCK_HOST_FAILURE_H
