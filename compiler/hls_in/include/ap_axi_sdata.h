// Declarations alone, for reading sources: nothing here runs. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ap_int.h>
template <int D, int U, int TI, int TD> struct ap_axiu {
    ap_uint<D> data;
    ap_uint<(D + 7) / 8> keep;
    ap_uint<(D + 7) / 8> strb;
    ap_uint<(U > 0 ? U : 1)> user;
    ap_uint<1> last;
    ap_uint<(TI > 0 ? TI : 1)> id;
    ap_uint<(TD > 0 ? TD : 1)> dest;
};
template <int D, int U, int TI, int TD> struct ap_axis {
    ap_int<D> data;
    ap_uint<(D + 7) / 8> keep;
    ap_uint<(D + 7) / 8> strb;
    ap_uint<(U > 0 ? U : 1)> user;
    ap_uint<1> last;
    ap_uint<(TI > 0 ? TI : 1)> id;
    ap_uint<(TD > 0 ? TD : 1)> dest;
};
namespace hls {
template <typename T> struct axis_bytes { enum { count = sizeof(T) }; };
template <int W> struct axis_bytes<ap_int<W> > { enum { count = (W + 7) / 8 }; };
template <int W> struct axis_bytes<ap_uint<W> > { enum { count = (W + 7) / 8 }; };
template <typename T, int U = 0, int TI = 0, int TD = 0> struct axis {
    T data;
    ap_uint<axis_bytes<T>::count> keep;
    ap_uint<axis_bytes<T>::count> strb;
    ap_uint<(U > 0 ? U : 1)> user;
    ap_uint<1> last;
    ap_uint<(TI > 0 ? TI : 1)> id;
    ap_uint<(TD > 0 ? TD : 1)> dest;
};
}
