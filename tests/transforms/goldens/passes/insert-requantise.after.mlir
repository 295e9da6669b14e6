#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %w: tensor<6x8xf32> {penstock.name = "w", penstock.kind = "param"}) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4x6xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    %dense = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x8xf32>, tensor<6x8xf32>) outs(%start : tensor<4x6xf32>) attrs =  {penstock.layer = "dense"} {
    ^bb0(%a: f32, %b: f32, %total: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %total, %p : f32
      linalg.yield %s : f32
    } -> tensor<4x6xf32>
    %0 = tensor.empty() : tensor<4x6xf32>
    %dense_requantise = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%dense : tensor<4x6xf32>) outs(%0 : tensor<4x6xf32>) attrs =  {penstock.layer = "dense.requantise"} {
    ^bb0(%1: f32, %2: f32):
      linalg.yield %1 : f32
    } -> tensor<4x6xf32>
    %f = tensor.empty() : tensor<4xf32>
    %none = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
    %sum = linalg.generic {indexing_maps = [#map0, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%dense_requantise : tensor<4x6xf32>) outs(%none : tensor<4xf32>) attrs =  {penstock.layer = "sum"} {
    ^bb0(%v: f32, %total_1: f32):
      %s_1 = arith.addf %total_1, %v : f32
      linalg.yield %s_1 : f32
    } -> tensor<4xf32>
    func.return %sum : tensor<4xf32>
  }
}
