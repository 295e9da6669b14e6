#ij = affine_map<(i, j) -> (i, j)>
#k = affine_map<(k) -> (k)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "double"} {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %v : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %f = tensor.empty() : tensor<32xf32>
  %z = linalg.generic {indexing_maps = [#k, #k], iterator_types = ["parallel"]}
      ins(%flat : tensor<32xf32>) outs(%f : tensor<32xf32>) attrs = {penstock.layer = "square"} {
  ^bb0(%v: f32, %o: f32):
    %s = arith.mulf %v, %v : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  func.return %z : tensor<32xf32>
}
