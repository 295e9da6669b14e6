#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<8x8xf32>) -> tensor<4x2xf32> {
  %part = tensor.extract_slice %x[4, 2] [4, 2] [1, 1] : tensor<8x8xf32> to tensor<4x2xf32>
  %e = tensor.empty() : tensor<4x2xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%part : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) attrs = {penstock.layer = "double"} {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %v : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}
