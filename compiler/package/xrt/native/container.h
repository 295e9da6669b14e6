// Whether a file is a whole xclbin container: XRT reads what its header says without looking at the file's size.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_CONTAINER_H
#define PENSTOCK_HOST_CONTAINER_H

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "npy.h"

namespace penstock {

inline std::uint64_t number_at(const std::vector<char> &data, std::size_t place, std::size_t bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(data[place + i]);
    return number;
}

// Offsets are those of xclbin.h: the header, its length and count of sections, and the table of sections behind it.
inline void check_container(const std::string &path) {
    const std::size_t length_at = 304, count_at = 448, table = 456, entry = 40;
    if (!exists(path))
        throw Failure(BAD_INPUT, path + " does not exist", "link the design (link/connectivity.cfg), or pass --xclbin");
    const std::vector<char> data = read_file(path);
    bool whole = data.size() >= table && std::memcmp(data.data(), "xclbin2", 8) == 0;
    const std::uint64_t length = whole ? number_at(data, length_at, 8) : 0,
                        count = whole ? number_at(data, count_at, 4) : 0;
    whole = whole && length <= data.size() && count <= (data.size() - table) / entry;
    for (std::uint64_t i = 0; whole && i < count; ++i) {
        const std::uint64_t offset = number_at(data, table + i * entry + 24, 8),
                            size = number_at(data, table + i * entry + 32, 8);
        whole = offset <= data.size() && size <= data.size() - offset;
    }
    if (!whole)
        throw Failure(BAD_INPUT, path + " is no whole bitstream", "pass what v++ --package wrote, copied to its end");
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_CONTAINER_H
