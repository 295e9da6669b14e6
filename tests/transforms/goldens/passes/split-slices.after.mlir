#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<8x8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x2xf32> {
    %0 = tensor.extract_slice %x[4, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
    %part = tensor.extract_slice %0[0, 2] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
    %e = tensor.empty() : tensor<4x2xf32>
    %double_ = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%part : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) attrs =  {penstock.layer = "double"} {
    ^bb0(%v: f32, %o: f32):
      %s = arith.addf %v, %v : f32
      linalg.yield %s : f32
    } -> tensor<4x2xf32>
    func.return %double_ : tensor<4x2xf32>
  }
}
