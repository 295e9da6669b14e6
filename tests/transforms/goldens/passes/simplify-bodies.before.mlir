#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "relu"} {
  ^bb0(%v: f32, %o: f32):
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %same = arith.mulf %v, %one : f32
    %positive = arith.cmpf ugt, %same, %zero : f32
    %s = arith.select %positive, %same, %zero : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
