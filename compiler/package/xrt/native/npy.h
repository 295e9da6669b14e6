// Reads and writes numpy's .npy files, and raw files.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_HOST_NPY_H
#define PENSTOCK_HOST_NPY_H

#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "element.h"

namespace penstock {

inline std::vector<char> read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Failure(BAD_INPUT, path + " cannot be opened", "check the name, and --package");
    std::vector<char> data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (file.bad()) throw Failure(BAD_INPUT, path + " cannot be read", "it must be a file, not a folder");
    return data;
}

inline bool exists(const std::string &path) { return std::ifstream(path, std::ios::binary).good(); }

namespace npy {

const std::map<std::string, Element> NAMES = {
    {"|b1", Element::BOOL},   {"|i1", Element::INT8},    {"<i2", Element::INT16},   {"<i4", Element::INT32},
    {"<i8", Element::INT64},  {"|u1", Element::UINT8},   {"<u2", Element::UINT16},  {"<u4", Element::UINT32},
    {"<u8", Element::UINT64}, {"<f4", Element::FLOAT32}, {"<f8", Element::FLOAT64},
};

inline Failure damaged(const std::string &path, const std::string &why) {
    return Failure(BAD_INPUT, path + " is no array that can be used: " + why, "write it with numpy.save");
}

// What stands after 'key': in the header, which is a Python dictionary.
inline std::string value_of(const std::string &header, const std::string &key, const std::string &path) {
    const std::size_t found = header.find("'" + key + "'");
    const std::size_t colon = found == std::string::npos ? found : header.find(':', found);
    if (colon == std::string::npos) throw damaged(path, "its header has no " + key);
    std::size_t start = colon + 1;
    while (start < header.size() && std::isspace(static_cast<unsigned char>(header[start]))) ++start;
    return header.substr(start);
}

inline Shape parse_shape(const std::string &text, const std::string &path) {
    Shape shape;
    std::size_t place = 1;
    if (text.empty() || text[0] != '(') throw damaged(path, "its shape cannot be read");
    while (place < text.size() && text[place] != ')') {
        if (std::isdigit(static_cast<unsigned char>(text[place]))) {
            std::size_t size = 0;
            for (; place < text.size() && std::isdigit(static_cast<unsigned char>(text[place])); ++place) {
                size = size * 10 + static_cast<std::size_t>(text[place] - '0');
                if (size > (std::size_t{1} << 40)) throw damaged(path, "its shape is too large");
            }
            shape.push_back(size);
        } else if (text[place] == ',' || text[place] == ' ') {
            ++place;
        } else {
            throw damaged(path, "its shape cannot be read");
        }
    }
    if (place >= text.size()) throw damaged(path, "its shape cannot be read");
    return shape;
}

inline Array parse(const std::vector<char> &file, const std::string &path) {
    const std::size_t start = 10;
    if (file.size() < start || std::memcmp(file.data(), "\x93NUMPY", 6) != 0) throw damaged(path, "it is no .npy file");
    const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(file[at])); };
    const bool wide = file[6] != 1;
    if (wide && file.size() < start + 2) throw damaged(path, "it is cut off");
    const std::size_t length = wide ? byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24 : byte(8) | byte(9) << 8;
    const std::size_t begin = wide ? start + 2 : start;
    if (length > file.size() - begin) throw damaged(path, "it is cut off");
    const std::string header(file.data() + begin, length);
    const std::string kind = value_of(header, "descr", path).substr(0, 5);
    const auto known = kind.size() == 5 && kind.front() == '\'' ? NAMES.find(kind.substr(1, 3)) : NAMES.end();
    if (known == NAMES.end()) throw damaged(path, "its elements are of type " + kind + ", which no port takes");
    if (value_of(header, "fortran_order", path).compare(0, 5, "False") != 0)
        throw damaged(path, "it is in Fortran order; use numpy.ascontiguousarray first");
    Array array{known->second, parse_shape(value_of(header, "shape", path), path), {}};
    std::size_t expected = bytes_of(array.element);
    for (std::size_t size : array.shape) {
        if (size && expected > file.size() / size) throw damaged(path, "it is shorter than its shape says");
        expected *= size;
    }
    if (file.size() - begin - length != expected) throw damaged(path, "its size is not what its shape says");
    array.data.assign(file.begin() + static_cast<std::ptrdiff_t>(begin + length), file.end());
    return array;
}

}  // namespace npy

inline Array read_npy(const std::string &path) { return npy::parse(read_file(path), path); }

inline void write_npy(const std::string &path, const Array &array) {
    std::string kind;
    for (const auto &name : npy::NAMES)
        if (name.second == array.element) kind = name.first;
    std::string shape = "(";
    for (std::size_t size : array.shape) shape += std::to_string(size) + ", ";
    std::string header = "{'descr': '" + kind + "', 'fortran_order': False, 'shape': " + shape + "), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(header.size() & 255)).put(static_cast<char>(header.size() >> 8));
    file << header;
    file.write(array.data.data(), static_cast<std::streamsize>(array.data.size()));
    if (!file.flush()) throw Failure(BAD_INPUT, path + " cannot be written", "choose another place with --output");
}

}  // namespace penstock

#endif  // PENSTOCK_HOST_NPY_H
