func.func @main(%x: tensor<2x7xf32>, %w: tensor<3x2x3xf32>) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<2x7xf32> to tensor<2x9xf32>
  %empty = tensor.empty() : tensor<3x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(f, n, c, p) -> (c, n * 2 + p)>, affine_map<(f, n, c, p) -> (f, c, p)>, affine_map<(f, n, c, p) -> (f, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%padded, %w : tensor<2x9xf32>, tensor<3x2x3xf32>) outs(%start : tensor<3x4xf32>) attrs = {penstock.layer = "conv"} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}
