// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace std {
template <typename _AP_T, _AP_T _AP_V> struct integral_constant {
    static constexpr _AP_T value = _AP_V;
    typedef _AP_T value_type;
    typedef integral_constant type;
    constexpr operator _AP_T() const { return _AP_V; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <typename _AP_T, typename _AP_U> struct is_same : false_type {};
template <typename _AP_T> struct is_same<_AP_T, _AP_T> : true_type {};
template <bool _AP_B, typename _AP_T = void> struct enable_if {};
template <typename _AP_T> struct enable_if<true, _AP_T> { typedef _AP_T type; };
template <bool _AP_B, typename _AP_T = void> using enable_if_t = typename enable_if<_AP_B, _AP_T>::type;
template <bool _AP_B, typename _AP_T, typename _AP_U> struct conditional { typedef _AP_T type; };
template <typename _AP_T, typename _AP_U> struct conditional<false, _AP_T, _AP_U> { typedef _AP_U type; };
template <bool _AP_B, typename _AP_T, typename _AP_U>
using conditional_t = typename conditional<_AP_B, _AP_T, _AP_U>::type;
template <typename _AP_T> struct remove_const { typedef _AP_T type; };
template <typename _AP_T> struct remove_const<const _AP_T> { typedef _AP_T type; };
template <typename _AP_T> struct remove_reference { typedef _AP_T type; };
template <typename _AP_T> struct remove_reference<_AP_T &> { typedef _AP_T type; };
template <typename _AP_T> using remove_cv_t = typename remove_const<_AP_T>::type;
template <typename _AP_T> using remove_reference_t = typename remove_reference<_AP_T>::type;
template <typename _AP_T> struct is_class : integral_constant<bool, __is_class(_AP_T)> {};
}
