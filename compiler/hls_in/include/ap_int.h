// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
template <int _AP_W> struct ap_uint;
struct ap_bits {
    operator __int128() const;
    template <typename _AP_T> ap_bits &operator=(_AP_T value);
    ap_bits &operator=(const ap_bits &value);
    int to_int() const;
    unsigned to_uint() const;
    unsigned long long to_uint64() const;
};
#define PENSTOCK_INTEGER(NAME) \
template <int _AP_W> struct NAME { \
    NAME(); \
    template <typename _AP_T> NAME(_AP_T value); \
    template <typename _AP_T> NAME &operator=(_AP_T value); \
    template <typename _AP_T> NAME &operator+=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator-=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator*=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator/=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator%=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator&=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator|=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator^=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator<<=(const _AP_T &value); \
    template <typename _AP_T> NAME &operator>>=(const _AP_T &value); \
    NAME &operator++(); \
    NAME &operator--(); \
    NAME operator++(int); \
    NAME operator--(int); \
    NAME operator~() const; \
    template <typename _AP_T> NAME operator<<(const _AP_T &by) const; \
    template <typename _AP_T> NAME operator>>(const _AP_T &by) const; \
    operator __int128() const; \
    ap_bits operator[](int at); \
    bool operator[](int at) const; \
    ap_bits range(int high, int low); \
    __int128 range(int high, int low) const; \
    ap_bits operator()(int high, int low); \
    __int128 operator()(int high, int low) const; \
    bool get_bit(int at) const; \
    bool test(int at) const; \
    void set_bit(int at, bool to); \
    int to_int() const; \
    unsigned to_uint() const; \
    long long to_int64() const; \
    unsigned long long to_uint64() const; \
    float to_float() const; \
    double to_double() const; \
    bool to_bool() const; \
    short to_short() const; \
    long to_long() const; \
    unsigned long to_ulong() const; \
    bool and_reduce() const; \
    bool or_reduce() const; \
    bool xor_reduce() const; \
    bool sign() const; \
    bool iszero() const; \
    void reverse(); \
    void set(int at); \
    void clear(int at); \
    void invert(int at); \
    int length() const; \
    static const int width = _AP_W; \
};
PENSTOCK_INTEGER(ap_int)
PENSTOCK_INTEGER(ap_uint)
#undef PENSTOCK_INTEGER
template <int _AP_A, int _AP_B> ap_uint<_AP_A + _AP_B> operator,(const ap_uint<_AP_A> &upper, const ap_uint<_AP_B> &lower);
template <int _AP_A, int _AP_B> ap_uint<_AP_A + _AP_B> operator,(const ap_int<_AP_A> &upper, const ap_int<_AP_B> &lower);
template <int _AP_A, int _AP_B> ap_uint<_AP_A + _AP_B> operator,(const ap_uint<_AP_A> &upper, const ap_int<_AP_B> &lower);
template <int _AP_A, int _AP_B> ap_uint<_AP_A + _AP_B> operator,(const ap_int<_AP_A> &upper, const ap_uint<_AP_B> &lower);
