#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %scale: tensor<1x1xf32> {penstock.name = "scale", penstock.kind = "input"}) -> tensor<4x8xf32> {
    %e = tensor.empty() : tensor<4x8xf32>
    %scale_1 = linalg.generic {indexing_maps = [#map0, affine_map<(d0, d1) -> (0, 0)>, #map0], iterator_types = ["parallel", "parallel"]} ins(%x, %scale : tensor<4x8xf32>, tensor<1x1xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "scale"} {
    ^bb0(%v: f32, %factor: f32, %o: f32):
      %s = arith.mulf %v, %factor : f32
      linalg.yield %s : f32
    } -> tensor<4x8xf32>
    func.return %scale_1 : tensor<4x8xf32>
  }
}
