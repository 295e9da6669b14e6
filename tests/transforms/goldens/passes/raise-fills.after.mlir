builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %start_: tensor<4xf32> {penstock.name = "start", penstock.kind = "input"}) -> tensor<4xf32> {
    %0 = arith.constant 0.000000e+00 : f32
    %1 = tensor.empty() : tensor<4xf32>
    %2 = linalg.fill ins(%0 : f32) outs(%1 : tensor<4xf32>) -> tensor<4xf32>
    %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%2 : tensor<4xf32>) attrs =  {penstock.layer = "sum"} {
    ^bb0(%v: f32, %total: f32):
      %s = arith.addf %total, %v : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    %3 = tensor.empty() : tensor<4xf32>
    %sum_start = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%sum, %start_ : tensor<4xf32>, tensor<4xf32>) outs(%3 : tensor<4xf32>) attrs =  {penstock.layer = "sum.start"} {
    ^bb0(%4: f32, %5: f32, %6: f32):
      %7 = arith.addf %4, %5 : f32
      linalg.yield %7 : f32
    } -> tensor<4xf32>
    func.return %sum_start : tensor<4xf32>
  }
}
