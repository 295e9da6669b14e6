// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ap_int.h>
template <int _AP_D, int _AP_U, int _AP_TI, int _AP_TD> struct ap_axiu {
    ap_uint<_AP_D> data;
    ap_uint<(_AP_D + 7) / 8> keep;
    ap_uint<(_AP_D + 7) / 8> strb;
    ap_uint<(_AP_U > 0 ? _AP_U : 1)> user;
    ap_uint<1> last;
    ap_uint<(_AP_TI > 0 ? _AP_TI : 1)> id;
    ap_uint<(_AP_TD > 0 ? _AP_TD : 1)> dest;
};
template <int _AP_D, int _AP_U, int _AP_TI, int _AP_TD> struct ap_axis {
    ap_int<_AP_D> data;
    ap_uint<(_AP_D + 7) / 8> keep;
    ap_uint<(_AP_D + 7) / 8> strb;
    ap_uint<(_AP_U > 0 ? _AP_U : 1)> user;
    ap_uint<1> last;
    ap_uint<(_AP_TI > 0 ? _AP_TI : 1)> id;
    ap_uint<(_AP_TD > 0 ? _AP_TD : 1)> dest;
};
namespace hls {
template <typename _AP_T> struct axis_bytes { enum { count = sizeof(_AP_T) }; };
template <int _AP_W> struct axis_bytes<ap_int<_AP_W> > { enum { count = (_AP_W + 7) / 8 }; };
template <int _AP_W> struct axis_bytes<ap_uint<_AP_W> > { enum { count = (_AP_W + 7) / 8 }; };
template <typename _AP_T, int _AP_U = 0, int _AP_TI = 0, int _AP_TD = 0> struct axis {
    _AP_T data;
    ap_uint<axis_bytes<_AP_T>::count> keep;
    ap_uint<axis_bytes<_AP_T>::count> strb;
    ap_uint<(_AP_U > 0 ? _AP_U : 1)> user;
    ap_uint<1> last;
    ap_uint<(_AP_TI > 0 ? _AP_TI : 1)> id;
    ap_uint<(_AP_TD > 0 ? _AP_TD : 1)> dest;
};
}
