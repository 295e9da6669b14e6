// Tokens of AXI streams as kernels are read with them, with integers that compute. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../../../compiler/hls_in/include/ap_axi_sdata.h"
