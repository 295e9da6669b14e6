// For sources that include it and use none of it. Written for Penstock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
