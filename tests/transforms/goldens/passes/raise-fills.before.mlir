#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<4x8xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%start : tensor<4xf32>) attrs = {penstock.layer = "sum"} {
  ^bb0(%v: f32, %total: f32):
    %s = arith.addf %total, %v : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %sum : tensor<4xf32>
}
