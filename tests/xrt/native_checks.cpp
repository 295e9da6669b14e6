// Checks of the host program's headers that need no XRT: files, packing, conversion, comparison, the schedule.
// Arguments: a folder with arrays that numpy wrote. Prints what failed and ends with the number of failures.
#include <cstdio>
#include <iostream>

#include "compare.h"
#include "options.h"
#include "schedule.h"

using namespace penstock;

static int failures = 0;

static void check(bool right, const char *what) {
    if (!right) std::cout << "failed: " << what << "\n", ++failures;
}

template <typename Action>
static void fails(Action action, const char *words) {
    try {
        action();
    } catch (const Failure &failure) {
        const bool said = std::string(failure.what()).find(words) != std::string::npos;
        if (!said) std::cout << "said: " << failure.what() << "\n";
        return check(said && failure.code() == BAD_INPUT, words);
    }
    check(false, words);
}

static Memory memory(Element element, Shape shape, Shape tile, Shape word, std::vector<float> scale = {}) {
    return {"m", "m", 0, 0, element, shape, shape, tile, word, shape, std::move(scale), "", 1, 0, 0};
}

static void check_schedule() {
    for (std::size_t units : {1, 2, 3})
        for (std::size_t sets : {1, 2, 3})
            for (std::size_t count : {0, 1, 2, 5, 20}) {
                std::vector<int> busy(units * sets, -1);
                std::size_t begun = 0, ended = 0, most = 0;
                const auto place = [&](std::size_t n) {
                    const Slot slot = slot_of(n, units, sets);
                    return slot.unit * sets + slot.set;
                };
                run_overlapped(
                    count, units, sets,
                    [&](std::size_t n) {
                        check(n == begun++ && busy[place(n)] == -1, "a slot is free when an inference begins in it");
                        busy[place(n)] = static_cast<int>(n);
                        most = std::max(most, begun - ended);
                    },
                    [&](std::size_t n) {
                        check(n == ended++ && busy[place(n)] == static_cast<int>(n), "inferences end in order");
                        busy[place(n)] = -1;
                    });
                check(begun == count && ended == count, "every inference begins and ends");
                check(most == std::min(count, units * sets), "all slots are in use");
            }
    check(slot_of(0, 2, 2).unit == 0 && slot_of(1, 2, 2).unit == 1 && slot_of(2, 2, 2).unit == 0, "units in turn");
    check(slot_of(2, 2, 2).set == 1 && slot_of(4, 2, 2).set == 0, "then sets in turn");
    check(spread_of({3, 1, 2}).median == 2 && spread_of({4, 1, 2, 3}).median == 2.5, "median");
}

static void check_packing(const std::string &folder) {
    const Array tensor = read_npy(folder + "/tensor.npy"), packed = read_npy(folder + "/packed.npy");
    const Memory place = memory(tensor.element, tensor.shape, {3, 4}, {1, 2});
    const Frames frames = penstock::packed(frames_of(tensor, place, true, "tensor"), place);
    check(frames.size() == 1 && frames[0] == packed.data, "packed as numpy packs");
    check(Packing(place).unpack(frames[0].data()) == tensor.data, "and unpacked again");
    const std::size_t size = bytes_of(place.element);
    for (std::size_t stripe = 0; stripe < 2; ++stripe) {
        Memory share = place;
        share.stripes = 2;
        share.stripe = stripe;
        Bytes wanted;
        for (std::size_t at = stripe * size; at < packed.data.size(); at += 2 * size)
            wanted.insert(wanted.end(), packed.data.begin() + at, packed.data.begin() + at + size);
        check(Packing(share).pack(tensor.data.data()) == wanted, "a bank's share has every second element");
    }
    for (const std::size_t stripes : {1, 4}) {
        Memory roomy = place;
        roomy.room = 4;
        roomy.stripes = stripes;
        Bytes wanted;
        for (std::size_t at = 0; at < packed.data.size(); at += 2 * size) {
            const auto word = packed.data.begin() + at;
            wanted.insert(wanted.end(), word, word + (stripes == 1 ? 2 : 1) * size);
            if (stripes == 1) wanted.insert(wanted.end(), 2 * size, '\0');
        }
        check(wanted.size() == roomy.bytes() && Packing(roomy).pack(tensor.data.data()) == wanted,
              "zeros lie behind the elements of a word that has room for more");
        check(stripes > 1 || Packing(roomy).unpack(wanted.data()) == tensor.data, "and are left behind as well");
    }
    const Frames several =
        penstock::packed(frames_of(read_npy(folder + "/several.npy"), place, true, "several"), place);
    check(several.size() == 2 && several[1] == packed.data, "several frames along a first dimension");
    check(answers_of(cut(tensor.data, place), place, true).shape == Shape({1, 6, 8}),
          "answers along a first dimension");
    const Array padded = read_npy(folder + "/padded.npy");
    for (const bool tiled : {true, false}) {
        Memory larger = memory(tensor.element, {9, 8}, tiled ? Shape{3, 4} : Shape{}, tiled ? Shape{1, 2} : Shape{});
        larger.valid = larger.model = tensor.shape;
        const Bytes filled = Packing(larger).pack(tensor.data.data());
        check(!tiled || filled == padded.data, "zeros lie behind a tensor that is smaller than its memory");
        check(filled.size() == larger.bytes() && Packing(larger).unpack(filled.data()) == tensor.data,
              "and are left behind");
    }
    write_npy(folder + "/again.npy", tensor);  // which numpy reads afterwards
}

static void check_numbers(const std::string &folder) {
    const Array real = read_npy(folder + "/real.npy"), quantised = read_npy(folder + "/quantised.npy");
    const Memory scaled = memory(Element::INT8, real.shape, {}, {}, {0.125f});
    check(to_elements(real, scaled, false, "real") == quantised.data, "quantised as numpy quantises");
    const Array back = answers_of({quantised.data}, scaled, false);
    check(back.element == Element::FLOAT32 &&
              element_at<float>(back.data, 1) == element_at<std::int8_t>(quantised.data, 1) * 0.125f,
          "dequantised");
    const Memory small = memory(Element::INT8, real.shape, {}, {});
    fails([&] { to_elements(real, small, false, "real"); }, "cannot be a value of m");
    fails([&] { to_elements(read_npy(folder + "/nan.npy"), scaled, false, "nan"); }, "cannot be a value of m");
    fails([&] { frames_of(read_npy(folder + "/nan.npy"), memory(Element::INT8, {5}, {}, {}), true, "nan"); },
          "reshape it");
    std::int8_t narrow = 0;
    check(!convert(std::int64_t{128}, narrow) && convert(std::int64_t{-128}, narrow) && narrow == -128, "ranges");
    std::uint64_t wide = 0;
    check(!convert(std::int64_t{-1}, wide) && !convert(1e30, wide) && !convert(0.5, wide),
          "no sign is lost, no fraction");
    float real_number = 0;
    check(!convert(1e300, real_number) && convert(-1.5, real_number) && real_number == -1.5F, "nothing becomes infinite");
}

static void check_files(const std::string &folder) {
    fails([&] { read_npy(folder + "/missing.npy"); }, "cannot be opened");
    fails([&] { read_npy(folder + "/complex.npy"); }, "which no port takes");
    fails([&] { read_npy(folder + "/fortran.npy"); }, "Fortran order");
    fails([&] { read_frames(folder + "/short.bin", memory(Element::INT32, {4}, {}, {}), false); },
          "a frame of m has 16");
    const std::vector<char> whole = read_file(folder + "/tensor.npy");
    for (std::size_t length = 0; length < whole.size(); ++length)
        fails([&] { npy::parse({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}, "cut"); }, "cut");
    for (std::size_t place = 0; place < 128; ++place)
        for (const int bits : {1, 4, 32, 255}) {
            std::vector<char> damaged = whole;
            damaged[place] = static_cast<char>(damaged[place] ^ bits);
            try {
                const Array array = npy::parse(damaged, "damaged");
                check(array.data.size() == count_of(array.shape) * bytes_of(array.element), "what is read is whole");
            } catch (const Failure &) {
            }
        }
}

static void check_comparison() {
    const std::vector<float> expected = {1.0f, 100.0f, NAN, INFINITY}, near = {1.005f, 100.0f, NAN, INFINITY},
                             far = {1.02f, NAN, 3.0f, -INFINITY};
    const auto bytes = [](const std::vector<float> &values) {
        return Bytes(reinterpret_cast<const char *>(values.data()),
                     reinterpret_cast<const char *>(values.data() + values.size()));
    };
    check(compare(bytes(near), bytes(expected), Element::FLOAT32, 1e-4).wrong == 0, "floats within the tolerance");
    check(compare(bytes(near), bytes(expected), Element::FLOAT32, 1e-5).wrong == 1, "and outside of it");
    check(compare(bytes(far), bytes(expected), Element::FLOAT32, 1e-4).wrong == 4,
          "NaN and infinity are no neighbours");
    check(compare({1, 2, 3}, {1, 2, 4}, Element::INT8, 1.0).wrong == 1, "integers bit for bit");
    check(compare({1, 2}, {1, 2, 4}, Element::INT8, 1.0).wrong == 3, "a size that differs");
}

static void check_options() {
    const Options options =
        parse_options({"--repeat", "7", "--expected", "y.npy", "--input", "x.npy", "--json"}, "here");
    check(options.repeat == 7 && options.verify && options.json && options.package == "here", "options");
    fails([] { parse_options({"--sets", "0"}, ""); }, "--sets cannot be 0");
    fails([] { parse_options({"--repeat", "-1"}, ""); }, "--repeat cannot be -1");
    fails([] { parse_options({"--tolerance", "much"}, ""); }, "--tolerance cannot be much");
    fails([] { parse_options({"--xclbin"}, ""); }, "--xclbin needs a value");
    fails([] { parse_options({"--fast"}, ""); }, "there is no option --fast");
}

int main(int, char **argv) {
    const std::string folder = argv[1];
    check_schedule();
    check_packing(folder);
    check_numbers(folder);
    check_files(folder);
    check_comparison();
    check_options();
    return failures > 100 ? 100 : failures;
}
