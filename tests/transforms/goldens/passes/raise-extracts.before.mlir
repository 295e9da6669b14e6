#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32>, %scale: tensor<1x1xf32>) -> tensor<4x8xf32> {
  %first = arith.constant 0 : index
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "scale"} {
  ^bb0(%v: f32, %o: f32):
    %factor = tensor.extract %scale[%first, %first] : tensor<1x1xf32>
    %s = arith.mulf %v, %factor : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
