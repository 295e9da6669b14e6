#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %y: tensor<8x4xf32> {penstock.name = "y", penstock.kind = "input"}) -> tensor<4x8xf32> {
    %e = tensor.empty() : tensor<4x8xf32>
    %sum = linalg.generic {indexing_maps = [#map0, affine_map<(d0, d1) -> (d1, d0)>, #map0], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "sum"} {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %s = arith.addf %v, %w : f32
      linalg.yield %s : f32
    } -> tensor<4x8xf32>
    func.return %sum : tensor<4x8xf32>
  }
}
