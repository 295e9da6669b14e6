void body(
    hls::stream<hls::vector<float, 2>> &unpack_x__body,
    hls::stream<hls::vector<float, 2>> &body__convert_body) {
#pragma HLS ARRAY_RESHAPE variable=body__w cyclic factor=2 dim=1
#pragma HLS BIND_STORAGE variable=body__w type=rom_1p impl=lutram
    for (int t1 = 0; t1 < 2; ++t1) {
        for (int p0 = 0; p0 < 3; ++p0) {
            body_compute_p1: for (int p1 = 0; p1 < 2; ++p1) {
#pragma HLS PIPELINE II=1 style=flp
                const hls::vector<float, 2> in0 = unpack_x__body.read();
                bool within0[2];
#pragma HLS ARRAY_PARTITION variable=within0 complete dim=0
                for (int l0 = 0; l0 < 2; ++l0) {
#pragma HLS UNROLL
                    within0[l0] = t1 * 4 + p1 * 2 + l0 < 7;
                }
                hls::vector<float, 2> y0;
                for (int l1 = 0; l1 < 2; ++l1) {
#pragma HLS UNROLL
                    const float power0 = pk::exp(in0[l1]);
                    y0[l1] = within0[l1] ? power0 : 0.0f;
                }
                body__convert_body.write(y0);
            }
        }
    }
}
