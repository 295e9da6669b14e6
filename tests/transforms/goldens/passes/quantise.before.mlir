#x = affine_map<(i, j, k) -> (i, k)>
#w = affine_map<(i, j, k) -> (j, k)>
#y = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %w: tensor<6x8xf32> {penstock.name = "w", penstock.kind = "param"}) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xf32>, tensor<6x8xf32>) outs(%start : tensor<4x6xf32>) attrs = {penstock.layer = "dense"} {
  ^bb0(%a: f32, %b: f32, %total: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %total, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  func.return %y : tensor<4x6xf32>
}
