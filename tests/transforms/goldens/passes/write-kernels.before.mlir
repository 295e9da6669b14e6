#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xi8>) -> (tensor<4x8xi8>, tensor<4x8xi8>) {
  %e = tensor.empty() : tensor<4x8xi8>
  %a = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xi8>) outs(%e : tensor<4x8xi8>) attrs = {penstock.layer = "rows"} {
  ^bb0(%v: i8, %o: i8):
    %s = arith.addi %v, %v : i8
    linalg.yield %s : i8
  } -> tensor<4x8xi8>
  %f = tensor.empty() : tensor<4x8xi8>
  %b = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xi8>) outs(%f : tensor<4x8xi8>) attrs = {penstock.layer = "columns"} {
  ^bb0(%v: i8, %o: i8):
    %s = arith.muli %v, %v : i8
    linalg.yield %s : i8
  } -> tensor<4x8xi8>
  func.return %a, %b : tensor<4x8xi8>, tensor<4x8xi8>
}
