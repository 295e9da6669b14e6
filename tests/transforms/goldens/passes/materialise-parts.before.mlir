#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %first: tensor<1x8xf32> {penstock.name = "first", penstock.kind = "param"}) -> tensor<5x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "double"} {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %v : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %all = tensor.concat dim(0) %first, %y : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  func.return %all : tensor<5x8xf32>
}
