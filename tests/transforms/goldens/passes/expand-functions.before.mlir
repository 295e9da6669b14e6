#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "wave"} {
  ^bb0(%v: f32, %o: f32):
    %three = arith.constant 3 : i32
    %cube = math.fpowi %v, %three : f32, i32
    %little = math.log1p %cube : f32
    %s = math.sin %v : f32
    %y = arith.addf %little, %s : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
