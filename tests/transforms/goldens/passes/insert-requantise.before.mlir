#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#x = affine_map<(i, j, k) -> (i, k)>
#w = affine_map<(i, j, k) -> (j, k)>
#y = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %w: tensor<6x8xf32> {penstock.name = "w", penstock.kind = "param"}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<6x8xf32>) outs(%start : tensor<4x6xf32>) attrs = {penstock.layer = "dense"} {
  ^bb0(%a: f32, %b: f32, %total: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %total, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %f = tensor.empty() : tensor<4xf32>
  %none = linalg.fill ins(%zero : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4x6xf32>) outs(%none : tensor<4xf32>) attrs = {penstock.layer = "sum"} {
  ^bb0(%v: f32, %total: f32):
    %s = arith.addf %total, %v : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %sum : tensor<4xf32>
}
