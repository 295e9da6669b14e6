#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x8xf32> {
    %half = arith.constant 5.000000e-01 : f32
    %e = tensor.empty() : tensor<4x8xf32>
    %halves = linalg.fill ins(%half : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    %halve = linalg.generic {indexing_maps = [#map0, #map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%x, %halves : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "halve"} {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %half_1 = arith.constant 5.000000e-01 : f32
      %s = arith.mulf %v, %half_1 : f32
      linalg.yield %s : f32
    } -> tensor<4x8xf32>
    func.return %halve : tensor<4x8xf32>
  }
}
