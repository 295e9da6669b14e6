#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<32xf32> {
    %e = tensor.empty() : tensor<4x8xf32>
    %double_ = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "double"} {
    ^bb0(%v: f32, %o: f32):
      %s = arith.addf %v, %v : f32
      linalg.yield %s : f32
    } -> tensor<4x8xf32>
    %0 = tensor.empty() : tensor<4x8xf32>
    %square = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%double_ : tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) attrs =  {penstock.layer = "square"} {
    ^bb0(%v_1: f32, %o_1: f32):
      %s_1 = arith.mulf %v_1, %v_1 : f32
      linalg.yield %s_1 : f32
    } -> tensor<4x8xf32>
    %z = tensor.collapse_shape %square [[0 : i64, 1 : i64]] : tensor<4x8xf32> into tensor<32xf32>
    func.return %z : tensor<32xf32>
  }
}
