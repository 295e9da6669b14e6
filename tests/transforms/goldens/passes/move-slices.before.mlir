#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
func.func @main(%x: tensor<8x4xf32>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %turned = linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) attrs = {penstock.layer = "transpose"} {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %part = tensor.extract_slice %turned[0, 2] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %f = tensor.empty() : tensor<4x2xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%part : tensor<4x2xf32>) outs(%f : tensor<4x2xf32>) attrs = {penstock.layer = "double"} {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %v : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}
