// Integers of 1 to 126 bits as ap_int computes with them: results are exact, shifts and ~ keep their type, what is
// assigned wraps. For running kernels of others. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_KERNEL_AP_INT_H
#define PENSTOCK_KERNEL_AP_INT_H
#include <cstdint>
#include <type_traits>

namespace penstock_integers {
typedef __int128 wide;
inline wide ones(int bits) { return (((wide)1) << bits) - 1; }

template <bool CHOSEN, typename YES, typename NO> using choice = typename std::conditional<CHOSEN, YES, NO>::type;
template <int W, bool S> struct stored {  // as many bytes as an array of such numbers takes a number
    typedef choice<W <= 8, choice<S, int8_t, uint8_t>,
        choice<W <= 16, choice<S, int16_t, uint16_t>,
        choice<W <= 32, choice<S, int32_t, uint32_t>,
        choice<W <= 64, choice<S, int64_t, uint64_t>, wide> > > > type;
};

template <typename N> struct bits {  // some bits of a number, read and written in place
    N &number;
    const int high, low;
    bits(N &of, int from, int to) : number(of), high(from), low(to) {}
    bits(const bits &) = default;
    operator wide() const { return ((wide)number >> low) & ones(high - low + 1); }
    template <typename T> bits &operator=(T value) {
        const wide mask = ones(high - low + 1);
        number = N(((wide)number & ~(mask << low)) | (((wide)value & mask) << low));
        return *this;
    }
    bits &operator=(const bits &other) { return *this = (wide)other; }
    unsigned long long to_uint64() const { return (unsigned long long)(wide)*this; }
    unsigned to_uint() const { return (unsigned)(wide)*this; }
    int to_int() const { return (int)(wide)*this; }
};

template <int W, bool SIGNED, typename OWN> class integer {
    static_assert(W >= 1 && W <= 126, "kernels run with integers of 1 to 126 bits");
    typename stored<W, SIGNED>::type value_;
    static wide narrow(wide x) {
        const wide rest = x & ones(W);
        return SIGNED && ((rest >> (W - 1)) & 1) ? rest - (((wide)1) << W) : rest;
    }
    OWN &own() { return static_cast<OWN &>(*this); }

public:
    integer() : value_(0) {}
    explicit integer(wide x) : value_(narrow(x)) {}
    static const int width = W;
    operator wide() const { return value_; }
    template <typename T> OWN &operator+=(const T &x) { return own() = (wide)value_ + (wide)x; }
    template <typename T> OWN &operator-=(const T &x) { return own() = (wide)value_ - (wide)x; }
    template <typename T> OWN &operator*=(const T &x) { return own() = (wide)value_ * (wide)x; }
    template <typename T> OWN &operator/=(const T &x) { return own() = (wide)value_ / (wide)x; }
    template <typename T> OWN &operator%=(const T &x) { return own() = (wide)value_ % (wide)x; }
    template <typename T> OWN &operator&=(const T &x) { return own() = (wide)value_ & (wide)x; }
    template <typename T> OWN &operator|=(const T &x) { return own() = (wide)value_ | (wide)x; }
    template <typename T> OWN &operator^=(const T &x) { return own() = (wide)value_ ^ (wide)x; }
    template <typename T> OWN &operator<<=(const T &x) { return own() = (wide)value_ << (int)(wide)x; }
    template <typename T> OWN &operator>>=(const T &x) { return own() = (wide)value_ >> (int)(wide)x; }
    OWN &operator++() { return own() = (wide)value_ + 1; }
    OWN &operator--() { return own() = (wide)value_ - 1; }
    OWN operator++(int) { OWN old = own(); own() = (wide)value_ + 1; return old; }
    OWN operator--(int) { OWN old = own(); own() = (wide)value_ - 1; return old; }
    OWN operator~() const { return OWN(~(wide)value_); }
    template <typename T> OWN operator<<(const T &by) const { return OWN((wide)value_ << (int)(wide)by); }
    template <typename T> OWN operator>>(const T &by) const { return OWN((wide)value_ >> (int)(wide)by); }
    bits<OWN> operator[](int at) { return bits<OWN>(own(), at, at); }
    bool operator[](int at) const { return ((wide)value_ >> at) & 1; }
    bits<OWN> range(int high, int low) { return bits<OWN>(own(), high, low); }
    wide range(int high, int low) const { return ((wide)value_ >> low) & ones(high - low + 1); }
    bits<OWN> operator()(int high, int low) { return bits<OWN>(own(), high, low); }
    wide operator()(int high, int low) const { return range(high, low); }
    bool get_bit(int at) const { return ((wide)value_ >> at) & 1; }
    bool test(int at) const { return ((wide)value_ >> at) & 1; }
    void set_bit(int at, bool to) { (*this)[at] = to; }
    int to_int() const { return (int)value_; }
    unsigned to_uint() const { return (unsigned)value_; }
    long long to_int64() const { return (long long)value_; }
    unsigned long long to_uint64() const { return (unsigned long long)value_; }
    float to_float() const { return (float)value_; }
    double to_double() const { return (double)value_; }
    bool to_bool() const { return value_ != 0; }
    short to_short() const { return (short)value_; }
    long to_long() const { return (long)value_; }
    unsigned long to_ulong() const { return (unsigned long)value_; }
    bool and_reduce() const { return ((wide)value_ & ones(W)) == ones(W); }
    bool or_reduce() const { return value_ != 0; }
    bool xor_reduce() const {
        bool odd = false;
        for (int i = 0; i < W; ++i) odd ^= get_bit(i);
        return odd;
    }
    bool sign() const { return SIGNED && get_bit(W - 1); }
    bool iszero() const { return value_ == 0; }
    void reverse() {
        wide turned = 0;
        for (int i = 0; i < W; ++i) turned |= (wide)get_bit(i) << (W - 1 - i);
        own() = turned;
    }
    void set(int at) { set_bit(at, true); }
    void clear(int at) { set_bit(at, false); }
    void invert(int at) { set_bit(at, !get_bit(at)); }
    int length() const { return W; }
};
}  // namespace penstock_integers

template <int W> struct ap_uint : penstock_integers::integer<W, false, ap_uint<W> > {
    typedef penstock_integers::integer<W, false, ap_uint<W> > base;
    ap_uint() {}
    template <typename T> ap_uint(T x) : base((penstock_integers::wide)x) {}
};
template <int W> struct ap_int : penstock_integers::integer<W, true, ap_int<W> > {
    typedef penstock_integers::integer<W, true, ap_int<W> > base;
    ap_int() {}
    template <typename T> ap_int(T x) : base((penstock_integers::wide)x) {}
};
template <int A, bool S, typename X, int B, bool T, typename Y>
ap_uint<A + B> operator,(const penstock_integers::integer<A, S, X> &upper, const penstock_integers::integer<B, T, Y> &lower) {
    using penstock_integers::ones;
    using penstock_integers::wide;
    return ap_uint<A + B>(((((wide)upper) & ones(A)) << B) | (((wide)lower) & ones(B)));
}
#endif  // PENSTOCK_KERNEL_AP_INT_H
