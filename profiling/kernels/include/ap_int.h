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

template <bool _AP_CHOSEN, typename _AP_YES, typename _AP_NO> using choice = typename std::conditional<_AP_CHOSEN, _AP_YES, _AP_NO>::type;
template <int _AP_W, bool _AP_S> struct stored {  // as many bytes as an array of such numbers takes a number
    typedef choice<_AP_W <= 8, choice<_AP_S, int8_t, uint8_t>,
        choice<_AP_W <= 16, choice<_AP_S, int16_t, uint16_t>,
        choice<_AP_W <= 32, choice<_AP_S, int32_t, uint32_t>,
        choice<_AP_W <= 64, choice<_AP_S, int64_t, uint64_t>, wide> > > > type;
};

template <typename _AP_N> struct bits {  // some bits of a number, read and written in place
    _AP_N &number;
    const int high, low;
    bits(_AP_N &of, int from, int to) : number(of), high(from), low(to) {}
    bits(const bits &) = default;
    operator wide() const { return ((wide)number >> low) & ones(high - low + 1); }
    template <typename _AP_T> bits &operator=(_AP_T value) {
        const wide mask = ones(high - low + 1);
        number = _AP_N(((wide)number & ~(mask << low)) | (((wide)value & mask) << low));
        return *this;
    }
    bits &operator=(const bits &other) { return *this = (wide)other; }
    unsigned long long to_uint64() const { return (unsigned long long)(wide)*this; }
    unsigned to_uint() const { return (unsigned)(wide)*this; }
    int to_int() const { return (int)(wide)*this; }
};

template <int _AP_W, bool _AP_SIGNED, typename _AP_OWN> class integer {
    static_assert(_AP_W >= 1 && _AP_W <= 126, "kernels run with integers of 1 to 126 bits");
    typename stored<_AP_W, _AP_SIGNED>::type value_;
    static wide narrow(wide x) {
        const wide rest = x & ones(_AP_W);
        return _AP_SIGNED && ((rest >> (_AP_W - 1)) & 1) ? rest - (((wide)1) << _AP_W) : rest;
    }
    _AP_OWN &own() { return static_cast<_AP_OWN &>(*this); }

public:
    integer() : value_(0) {}
    explicit integer(wide x) : value_(narrow(x)) {}
    static const int width = _AP_W;
    operator wide() const { return value_; }
    template <typename _AP_T> _AP_OWN &operator+=(const _AP_T &x) { return own() = (wide)value_ + (wide)x; }
    template <typename _AP_T> _AP_OWN &operator-=(const _AP_T &x) { return own() = (wide)value_ - (wide)x; }
    template <typename _AP_T> _AP_OWN &operator*=(const _AP_T &x) { return own() = (wide)value_ * (wide)x; }
    template <typename _AP_T> _AP_OWN &operator/=(const _AP_T &x) { return own() = (wide)value_ / (wide)x; }
    template <typename _AP_T> _AP_OWN &operator%=(const _AP_T &x) { return own() = (wide)value_ % (wide)x; }
    template <typename _AP_T> _AP_OWN &operator&=(const _AP_T &x) { return own() = (wide)value_ & (wide)x; }
    template <typename _AP_T> _AP_OWN &operator|=(const _AP_T &x) { return own() = (wide)value_ | (wide)x; }
    template <typename _AP_T> _AP_OWN &operator^=(const _AP_T &x) { return own() = (wide)value_ ^ (wide)x; }
    template <typename _AP_T> _AP_OWN &operator<<=(const _AP_T &x) { return own() = (wide)value_ << (int)(wide)x; }
    template <typename _AP_T> _AP_OWN &operator>>=(const _AP_T &x) { return own() = (wide)value_ >> (int)(wide)x; }
    _AP_OWN &operator++() { return own() = (wide)value_ + 1; }
    _AP_OWN &operator--() { return own() = (wide)value_ - 1; }
    _AP_OWN operator++(int) { _AP_OWN old = own(); own() = (wide)value_ + 1; return old; }
    _AP_OWN operator--(int) { _AP_OWN old = own(); own() = (wide)value_ - 1; return old; }
    _AP_OWN operator~() const { return _AP_OWN(~(wide)value_); }
    template <typename _AP_T> _AP_OWN operator<<(const _AP_T &by) const { return _AP_OWN((wide)value_ << (int)(wide)by); }
    template <typename _AP_T> _AP_OWN operator>>(const _AP_T &by) const { return _AP_OWN((wide)value_ >> (int)(wide)by); }
    bits<_AP_OWN> operator[](int at) { return bits<_AP_OWN>(own(), at, at); }
    bool operator[](int at) const { return ((wide)value_ >> at) & 1; }
    bits<_AP_OWN> range(int high, int low) { return bits<_AP_OWN>(own(), high, low); }
    wide range(int high, int low) const { return ((wide)value_ >> low) & ones(high - low + 1); }
    bits<_AP_OWN> operator()(int high, int low) { return bits<_AP_OWN>(own(), high, low); }
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
    bool and_reduce() const { return ((wide)value_ & ones(_AP_W)) == ones(_AP_W); }
    bool or_reduce() const { return value_ != 0; }
    bool xor_reduce() const {
        bool odd = false;
        for (int i = 0; i < _AP_W; ++i) odd ^= get_bit(i);
        return odd;
    }
    bool sign() const { return _AP_SIGNED && get_bit(_AP_W - 1); }
    bool iszero() const { return value_ == 0; }
    void reverse() {
        wide turned = 0;
        for (int i = 0; i < _AP_W; ++i) turned |= (wide)get_bit(i) << (_AP_W - 1 - i);
        own() = turned;
    }
    void set(int at) { set_bit(at, true); }
    void clear(int at) { set_bit(at, false); }
    void invert(int at) { set_bit(at, !get_bit(at)); }
    int length() const { return _AP_W; }
};
}  // namespace penstock_integers

template <int _AP_W> struct ap_uint : penstock_integers::integer<_AP_W, false, ap_uint<_AP_W> > {
    typedef penstock_integers::integer<_AP_W, false, ap_uint<_AP_W> > base;
    ap_uint() {}
    template <typename _AP_T> ap_uint(_AP_T x) : base((penstock_integers::wide)x) {}
};
template <int _AP_W> struct ap_int : penstock_integers::integer<_AP_W, true, ap_int<_AP_W> > {
    typedef penstock_integers::integer<_AP_W, true, ap_int<_AP_W> > base;
    ap_int() {}
    template <typename _AP_T> ap_int(_AP_T x) : base((penstock_integers::wide)x) {}
};
template <int _AP_A, bool _AP_S, typename _AP_X, int _AP_B, bool _AP_T, typename _AP_Y>
ap_uint<_AP_A + _AP_B> operator,(const penstock_integers::integer<_AP_A, _AP_S, _AP_X> &upper, const penstock_integers::integer<_AP_B, _AP_T, _AP_Y> &lower) {
    using penstock_integers::ones;
    using penstock_integers::wide;
    return ap_uint<_AP_A + _AP_B>(((((wide)upper) & ones(_AP_A)) << _AP_B) | (((wide)lower) & ones(_AP_B)));
}
#endif  // PENSTOCK_KERNEL_AP_INT_H
