#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<32xf32>) -> tensor<1x4x8xf32> {
  %rows = tensor.expand_shape %x [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "double"} {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %v : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %batch = tensor.expand_shape %y [[0, 1], [2]] output_shape [1, 4, 8] : tensor<4x8xf32> into tensor<1x4x8xf32>
  func.return %batch : tensor<1x4x8xf32>
}
