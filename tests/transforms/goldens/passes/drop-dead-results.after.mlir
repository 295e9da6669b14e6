builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4xf32> {
    %lowest = arith.constant -3.000000e+38 : f32
    %e = tensor.empty() : tensor<4xf32>
    %values = linalg.fill ins(%lowest : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %max = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%values : tensor<4xf32>) attrs =  {penstock.layer = "max"} {
    ^bb0(%v: f32, %best: f32):
      %larger = arith.maximumf %v, %best : f32
      linalg.yield %larger : f32
    } -> tensor<4xf32>
    func.return %max : tensor<4xf32>
  }
}
