// A simulated board: the Verilated top with its serial pins bridged to a pseudo-terminal, bit by bit.
//
// usage: board CLOCK_HZ BAUD LEDS_ACTIVE_LOW RESET_ACTIVE_LOW
// Prints "port /dev/pts/N" and runs until its standard input ends. Simulated time stands still while the core is idle
// and nothing is on the line.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <memory>

#include "Vboard.h"
#include "verilated.h"

namespace {

constexpr int kBusyLed = 1;
constexpr int kCyclesBetweenLooks = 2000;
constexpr int kIdleCycles = 400;

// The host's end of the line: what it sends arrives at the board's receiver.
class Sender {
   public:
    explicit Sender(double bit) : bit_(bit) {}
    void push(unsigned char byte) { waiting_.push_back(byte); }
    bool idle() const { return waiting_.empty() && position_ == 0; }
    int step() {
        if (position_ == 0) {
            if (waiting_.empty()) return 1;
            frame_ = 0x200 | (waiting_.front() << 1);  // start bit, data lowest first, stop bit
            waiting_.pop_front();
            position_ = 10;
            left_ += bit_;
        }
        const int level = frame_ & 1;
        left_ -= 1;
        if (left_ <= 0) {
            frame_ >>= 1;
            if (--position_ > 0) left_ += bit_;
        }
        return level;
    }

   private:
    double bit_, left_ = 0;
    int frame_ = 0, position_ = 0;
    std::deque<unsigned char> waiting_;
};

// The host's end of the line: what the board sends, sampled in the middle of each bit.
class Receiver {
   public:
    explicit Receiver(double bit) : bit_(bit) {}
    bool idle() const { return position_ < 0; }
    // True when a byte is complete.
    bool step(int level, unsigned char &byte) {
        if (position_ < 0) {
            if (level == 0) position_ = 0, left_ = bit_ / 2, value_ = 0;
            return false;
        }
        left_ -= 1;
        if (left_ > 0) return false;
        left_ += bit_;
        if (position_ == 0 && level == 1) {
            position_ = -1;
            return false;
        }
        if (position_ == 9) {
            position_ = -1;
            byte = static_cast<unsigned char>(value_);
            return level == 1;
        }
        if (position_ > 0) value_ |= level << (position_ - 1);
        ++position_;
        return false;
    }

   private:
    double bit_, left_ = 0;
    int position_ = -1, value_ = 0;
};

int open_terminal() {
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return -1;
    // Held open here, so that the port survives a client that closes it.
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    termios settings;
    if (slave < 0 || tcgetattr(slave, &settings) != 0) return -1;
    cfmakeraw(&settings);
    if (tcsetattr(slave, TCSANOW, &settings) != 0) return -1;
    std::printf("port %s\n", ptsname(master));
    std::fflush(stdout);
    return master;
}

bool owner_is_gone() {
    pollfd owner{0, POLLIN, 0};
    if (poll(&owner, 1, 0) <= 0) return false;
    char byte;
    return read(0, &byte, 1) <= 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 5) return std::fprintf(stderr, "usage: board CLOCK_HZ BAUD LEDS_ACTIVE_LOW RESET_ACTIVE_LOW\n"), 2;
    const double bit = std::atof(argv[1]) / std::atof(argv[2]);
    const int dark = std::atoi(argv[3]), released = std::atoi(argv[4]);
    const int terminal = open_terminal();
    if (terminal < 0) return std::perror("no pseudo-terminal"), 1;

    VerilatedContext context;
    auto board = std::make_unique<Vboard>(&context);
    Sender sender(bit);
    Receiver receiver(bit);
    std::deque<unsigned char> answers;
    long quiet = 0;
    board->reset_button = released;
    board->uart_rx = 1;

    while (true) {
        for (int i = 0; i < kCyclesBetweenLooks; ++i) {
            board->uart_rx = sender.step();
            board->clock = 0;
            board->eval();
            board->clock = 1;
            board->eval();
            unsigned char byte;
            if (receiver.step(board->uart_tx, byte)) answers.push_back(byte);
            const bool active = !sender.idle() || !receiver.idle() || (board->leds >> kBusyLed & 1) != dark;
            quiet = active ? 0 : quiet + 1;
            if (quiet > kIdleCycles) break;
        }
        while (!answers.empty() && write(terminal, &answers.front(), 1) == 1) answers.pop_front();
        if (quiet > kIdleCycles && answers.empty()) {
            pollfd events[2] = {{terminal, POLLIN, 0}, {0, POLLIN, 0}};
            poll(events, 2, -1);
        }
        if (owner_is_gone()) break;
        unsigned char buffer[512];
        const ssize_t count = read(terminal, buffer, sizeof buffer);
        for (ssize_t i = 0; i < count; ++i) sender.push(buffer[i]);
        if (count > 0) quiet = 0;
    }
    board->final();
    close(terminal);
    return 0;
}
