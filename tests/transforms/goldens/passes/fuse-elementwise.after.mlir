#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %bias: tensor<8xf32> {penstock.name = "bias", penstock.kind = "input"}) -> tensor<4x8xf32> {
    %e = tensor.empty() : tensor<4x8xf32>
    %bias_relu = linalg.generic {indexing_maps = [#map0, affine_map<(d0, d1) -> (d1)>, #map0], iterator_types = ["parallel", "parallel"]} ins(%x, %bias : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "bias.relu"} {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %s = arith.addf %v, %w : f32
      %zero = arith.constant 0.000000e+00 : f32
      %s_1 = arith.maximumf %s, %zero : f32
      linalg.yield %s_1 : f32
    } -> tensor<4x8xf32>
    func.return %bias_relu : tensor<4x8xf32>
  }
}
