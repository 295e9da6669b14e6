// Fixed-point numbers of 1 to 126 bits as ap_fixed computes with them: sums, products and quotients are as wide as they
// may become, what is assigned is rounded and kept in range as its type says. For running kernels of others. Written
// for Penstock.
// SPDX-License-Identifier: Apache-2.0
#ifndef PENSTOCK_KERNEL_AP_FIXED_H
#define PENSTOCK_KERNEL_AP_FIXED_H
#include <cmath>

#include "ap_int.h"

enum ap_q_mode { AP_RND, AP_RND_ZERO, AP_RND_MIN_INF, AP_RND_INF, AP_RND_CONV, AP_TRN, AP_TRN_ZERO };
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q = AP_TRN, ap_o_mode _AP_O = AP_WRAP, int _AP_N = 0> struct ap_fixed;
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q = AP_TRN, ap_o_mode _AP_O = AP_WRAP, int _AP_N = 0> struct ap_ufixed;

namespace penstock_fixed {
using penstock_integers::choice;
using penstock_integers::ones;
using penstock_integers::stored;
using penstock_integers::wide;
constexpr int larger(int a, int b) { return a > b ? a : b; }

inline wide moved(wide x, int by) {  // times two to some power: what lies above 128 bits is lost, what lies below too
    if (by >= 0) return by > 127 ? 0 : (wide)((unsigned __int128)x << by);
    return x >> (by < -127 ? 127 : -by);
}
inline wide rounded(wide x, int drop, ap_q_mode mode) {  // without its lowest bits
    if (drop > 126) drop = 126;
    const wide down = x >> drop, rest = x & ones(drop), half = (wide)1 << (drop - 1);
    if (mode == AP_TRN) return down;
    if (mode == AP_TRN_ZERO) return down + (x < 0 && rest != 0);
    const bool tie = mode == AP_RND || (mode == AP_RND_ZERO && x < 0) || (mode == AP_RND_INF && x >= 0) || (mode == AP_RND_CONV && (down & 1));
    return down + (rest > half || (rest == half && tie));
}
// x / 2^from as a number of so many bits, of which `to` lie below the point
inline wide fitted(wide x, int from, int to, int bits, bool sign, ap_q_mode q, ap_o_mode o) {
    const wide high = ones(sign ? bits - 1 : bits), low = !sign ? 0 : o == AP_SAT_SYM ? -high : -high - 1;
    bool beyond = false;
    wide kept = x;
    if (from > to) {
        kept = rounded(x, from - to, q);
    } else if (from < to) {
        const wide most = to - from > 126 ? 0 : ones(126) >> (to - from);
        beyond = x > most || x < -most;
        kept = moved(x, to - from);
    }
    const bool over = beyond ? x > 0 : kept > high, under = beyond ? x < 0 : kept < low;
    if (o != AP_WRAP && (over || under)) return o == AP_SAT_ZERO ? 0 : over ? high : low;
    const wide rest = kept & ones(bits);
    return sign && ((rest >> (bits - 1)) & 1) ? rest - ((wide)1 << bits) : rest;
}

// What takes part in arithmetic: bits, bits above the point, sign, and the number as an integer.
template <typename _AP_T, typename = void> struct part { static const bool is = false, fixed = false; };
template <int _AP_W, int _AP_I, bool _AP_S, bool _AP_F> struct measures {
    static const bool is = true, fixed = _AP_F, sign = _AP_S;
    static const int bits = _AP_W, above = _AP_I, below = _AP_W - _AP_I;
};
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q, ap_o_mode _AP_O, int _AP_N>
struct part<ap_fixed<_AP_W, _AP_I, _AP_Q, _AP_O, _AP_N>, void> : measures<_AP_W, _AP_I, true, true> {
    static wide raw(const ap_fixed<_AP_W, _AP_I, _AP_Q, _AP_O, _AP_N> &x) { return x.raw(); }
};
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q, ap_o_mode _AP_O, int _AP_N>
struct part<ap_ufixed<_AP_W, _AP_I, _AP_Q, _AP_O, _AP_N>, void> : measures<_AP_W, _AP_I, false, true> {
    static wide raw(const ap_ufixed<_AP_W, _AP_I, _AP_Q, _AP_O, _AP_N> &x) { return x.raw(); }
};
template <int _AP_W> struct part<ap_int<_AP_W>, void> : measures<_AP_W, _AP_W, true, false> {
    static wide raw(const ap_int<_AP_W> &x) { return x; }
};
template <int _AP_W> struct part<ap_uint<_AP_W>, void> : measures<_AP_W, _AP_W, false, false> {
    static wide raw(const ap_uint<_AP_W> &x) { return x; }
};
template <typename _AP_T> struct part<_AP_T, typename std::enable_if<std::is_integral<_AP_T>::value>::type>
    : measures<std::is_same<_AP_T, bool>::value ? 1 : 8 * (int)sizeof(_AP_T),
               std::is_same<_AP_T, bool>::value ? 1 : 8 * (int)sizeof(_AP_T), std::is_signed<_AP_T>::value, false> {
    static wide raw(_AP_T x) { return x; }
};

template <int _AP_W, int _AP_I, bool _AP_S> struct number {
    typedef choice<_AP_S, ap_fixed<_AP_W, _AP_I>, ap_ufixed<_AP_W, _AP_I> > type;
};
template <typename _AP_A, typename _AP_B> struct both {
    typedef part<_AP_A> a;
    typedef part<_AP_B> b;
    static const int below = larger(a::below, b::below);
    static const int above = larger(a::above + (b::sign && !a::sign), b::above + (a::sign && !b::sign)) + 1;
    static const bool sign = a::sign || b::sign;
    typedef typename number<above + below, above, sign>::type sum;
    typedef typename number<above + below, above, true>::type difference;
    typedef typename number<a::bits + b::bits, a::above + b::above, sign>::type product;
    typedef typename number<b::sign + a::bits + larger(b::below, 0), b::sign + a::above + b::below, sign>::type quotient;
    static wide left(const _AP_A &x) { return moved(a::raw(x), below - a::below); }
    static wide right(const _AP_B &x) { return moved(b::raw(x), below - b::below); }
};
template <typename _AP_A, typename _AP_B> struct meet {
    static const bool exact = part<_AP_A>::is && part<_AP_B>::is && (part<_AP_A>::fixed || part<_AP_B>::fixed);
    static const bool real = (part<_AP_A>::fixed && std::is_floating_point<_AP_B>::value) ||
                             (part<_AP_B>::fixed && std::is_floating_point<_AP_A>::value);
};

template <typename _AP_N> struct raw_bits {
    _AP_N &number;
    const int high, low;
    raw_bits(_AP_N &of, int from, int to) : number(of), high(from), low(to) {}
    raw_bits(const raw_bits &) = default;
    operator wide() const { return (number.raw() >> low) & ones(high - low + 1); }
    template <typename _AP_T> raw_bits &operator=(const _AP_T &value) {
        const wide mask = ones(high - low + 1);
        number.set_raw((number.raw() & ~(mask << low)) | (((wide)value & mask) << low));
        return *this;
    }
    raw_bits &operator=(const raw_bits &other) { return *this = (wide)other; }
};

template <int _AP_W, int _AP_I, bool _AP_S, ap_q_mode _AP_Q, ap_o_mode _AP_O, int _AP_N, typename _AP_OWN> class fixed {
    static_assert(_AP_W >= 1 && _AP_W <= 126, "kernels run with fixed-point numbers of 1 to 126 bits");
    static_assert(_AP_O != AP_WRAP_SM && _AP_N == 0, "kernels run without AP_WRAP_SM and saturated bits");
    typename stored<_AP_W, _AP_S>::type value_;
    _AP_OWN &own() { return static_cast<_AP_OWN &>(*this); }
    const _AP_OWN &own() const { return static_cast<const _AP_OWN &>(*this); }

protected:
    void take(wide x, int below) { value_ = fitted(x, below, _AP_W - _AP_I, _AP_W, _AP_S, _AP_Q, _AP_O); }
    template <typename _AP_T> typename std::enable_if<part<_AP_T>::is>::type set(const _AP_T &x) { take(part<_AP_T>::raw(x), part<_AP_T>::below); }
    template <typename _AP_T> typename std::enable_if<std::is_floating_point<_AP_T>::value>::type set(_AP_T x) {
        int power = 0;
        const double part_of_one = std::isfinite(x) ? std::frexp((double)x, &power) : 0.0;
        take((wide)std::ldexp(part_of_one, 53), 53 - power);
    }
    template <typename _AP_T> typename std::enable_if<!part<_AP_T>::is && !std::is_floating_point<_AP_T>::value>::type set(const _AP_T &x) { take((wide)x, 0); }

public:
    static const int width = _AP_W, iwidth = _AP_I;
    fixed() : value_(0) {}
    wide raw() const { return value_; }
    void set_raw(wide x) { value_ = fitted(x, 0, 0, _AP_W, _AP_S, AP_TRN, AP_WRAP); }
    static _AP_OWN of_raw(wide x) {
        _AP_OWN made;
        made.set_raw(x);
        return made;
    }
    double to_double() const { return std::ldexp((double)value_, _AP_I - _AP_W); }
    float to_float() const { return (float)to_double(); }
    wide whole() const {  // towards zero
        const int below = _AP_W - _AP_I;
        return below > 0 ? rounded(value_, below, AP_TRN_ZERO) : moved(value_, -below);
    }
    int to_int() const { return (int)whole(); }
    unsigned to_uint() const { return (unsigned)whole(); }
    long long to_int64() const { return (long long)whole(); }
    unsigned long long to_uint64() const { return (unsigned long long)whole(); }
    template <typename _AP_T, typename std::enable_if<std::is_floating_point<_AP_T>::value, int>::type = 0> operator _AP_T() const { return (_AP_T)to_double(); }
    template <typename _AP_T, typename std::enable_if<(std::is_integral<_AP_T>::value && !std::is_same<_AP_T, bool>::value) || std::is_same<_AP_T, wide>::value, int>::type = 0>
    operator _AP_T() const { return (_AP_T)whole(); }
    template <typename _AP_T, typename std::enable_if<std::is_same<_AP_T, bool>::value, int>::type = 0> operator _AP_T() const { return value_ != 0; }
    bool operator!() const { return value_ == 0; }
    typename number<_AP_W + 1, _AP_I + 1, true>::type operator-() const { return number<_AP_W + 1, _AP_I + 1, true>::type::of_raw(-(wide)value_); }
    const _AP_OWN &operator+() const { return own(); }
    _AP_OWN operator<<(int by) const { return of_raw(moved(value_, by)); }
    _AP_OWN operator>>(int by) const { return of_raw(moved(value_, -by)); }
    _AP_OWN &operator<<=(int by) { return own() = own() << by; }
    _AP_OWN &operator>>=(int by) { return own() = own() >> by; }
    template <typename _AP_T> _AP_OWN &operator+=(const _AP_T &x) { return own() = own() + x; }
    template <typename _AP_T> _AP_OWN &operator-=(const _AP_T &x) { return own() = own() - x; }
    template <typename _AP_T> _AP_OWN &operator*=(const _AP_T &x) { return own() = own() * x; }
    template <typename _AP_T> _AP_OWN &operator/=(const _AP_T &x) { return own() = own() / x; }
    _AP_OWN &operator++() { return own() += 1; }
    _AP_OWN &operator--() { return own() -= 1; }
    _AP_OWN operator++(int) { _AP_OWN old = own(); own() += 1; return old; }
    _AP_OWN operator--(int) { _AP_OWN old = own(); own() -= 1; return old; }
    raw_bits<_AP_OWN> operator[](int at) { return raw_bits<_AP_OWN>(own(), at, at); }
    bool operator[](int at) const { return (raw() >> at) & 1; }
    raw_bits<_AP_OWN> range(int high, int low) { return raw_bits<_AP_OWN>(own(), high, low); }
    wide range(int high, int low) const { return (raw() >> low) & ones(high - low + 1); }
    raw_bits<_AP_OWN> range() { return range(_AP_W - 1, 0); }
    wide range() const { return range(_AP_W - 1, 0); }
    raw_bits<_AP_OWN> operator()(int high, int low) { return range(high, low); }
    wide operator()(int high, int low) const { return range(high, low); }
    bool is_neg() const { return value_ < 0; }
    bool iszero() const { return value_ == 0; }
    int length() const { return _AP_W; }
};
}  // namespace penstock_fixed

template <int _AP_W, int _AP_I, ap_q_mode _AP_Q, ap_o_mode _AP_O, int _AP_N>
struct ap_fixed : penstock_fixed::fixed<_AP_W, _AP_I, true, _AP_Q, _AP_O, _AP_N, ap_fixed<_AP_W, _AP_I, _AP_Q, _AP_O, _AP_N> > {
    ap_fixed() {}
    ap_fixed(const ap_fixed &) = default;
    ap_fixed &operator=(const ap_fixed &) = default;
    template <typename _AP_T> ap_fixed(const _AP_T &x) { this->set(x); }
};
template <int _AP_W, int _AP_I, ap_q_mode _AP_Q, ap_o_mode _AP_O, int _AP_N>
struct ap_ufixed : penstock_fixed::fixed<_AP_W, _AP_I, false, _AP_Q, _AP_O, _AP_N, ap_ufixed<_AP_W, _AP_I, _AP_Q, _AP_O, _AP_N> > {
    ap_ufixed() {}
    ap_ufixed(const ap_ufixed &) = default;
    ap_ufixed &operator=(const ap_ufixed &) = default;
    template <typename _AP_T> ap_ufixed(const _AP_T &x) { this->set(x); }
};

#define PENSTOCK_EXACT(sign, result, how)                                                                               \
    template <typename _AP_A, typename _AP_B, typename std::enable_if<penstock_fixed::meet<_AP_A, _AP_B>::exact, int>::type = 0> \
    typename penstock_fixed::both<_AP_A, _AP_B>::result operator sign(const _AP_A &x, const _AP_B &y) {                  \
        typedef penstock_fixed::both<_AP_A, _AP_B> them;                                                                 \
        return them::result::of_raw(how);                                                                                \
    }
#define PENSTOCK_REAL(sign, result)                                                                                     \
    template <typename _AP_A, typename _AP_B, typename std::enable_if<penstock_fixed::meet<_AP_A, _AP_B>::real, int>::type = 0> \
    result operator sign(const _AP_A &x, const _AP_B &y) { return (double)x sign (double)y; }
#define PENSTOCK_COMPARED(sign)                                                                                         \
    template <typename _AP_A, typename _AP_B, typename std::enable_if<penstock_fixed::meet<_AP_A, _AP_B>::exact, int>::type = 0> \
    bool operator sign(const _AP_A &x, const _AP_B &y) {                                                                 \
        typedef penstock_fixed::both<_AP_A, _AP_B> them;                                                                 \
        return them::left(x) sign them::right(y);                                                                        \
    }                                                                                                                    \
    PENSTOCK_REAL(sign, bool)
#define PENSTOCK_INTO(sign)                                                                                             \
    template <typename _AP_A, typename _AP_B, typename std::enable_if<std::is_arithmetic<_AP_A>::value && penstock_fixed::part<_AP_B>::fixed, int>::type = 0> \
    _AP_A &operator sign##=(_AP_A &x, const _AP_B &y) { return x = (_AP_A)(x sign y); }
PENSTOCK_EXACT(+, sum, them::left(x) + them::right(y))
PENSTOCK_EXACT(-, difference, them::left(x) - them::right(y))
PENSTOCK_EXACT(*, product, them::a::raw(x) * them::b::raw(y))
PENSTOCK_EXACT(/, quotient, penstock_fixed::moved(them::a::raw(x), penstock_fixed::larger(them::b::below, 0)) / them::b::raw(y))
PENSTOCK_REAL(+, double)
PENSTOCK_REAL(-, double)
PENSTOCK_REAL(*, double)
PENSTOCK_REAL(/, double)
PENSTOCK_COMPARED(<)
PENSTOCK_COMPARED(<=)
PENSTOCK_COMPARED(>)
PENSTOCK_COMPARED(>=)
PENSTOCK_COMPARED(==)
PENSTOCK_COMPARED(!=)
PENSTOCK_INTO(+)
PENSTOCK_INTO(-)
PENSTOCK_INTO(*)
PENSTOCK_INTO(/)
#undef PENSTOCK_INTO
#undef PENSTOCK_EXACT
#undef PENSTOCK_REAL
#undef PENSTOCK_COMPARED
#endif  // PENSTOCK_KERNEL_AP_FIXED_H
