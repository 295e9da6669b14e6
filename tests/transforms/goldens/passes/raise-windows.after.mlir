builtin.module {
  func.func @main(%x: tensor<2x7xf32> {penstock.name = "x", penstock.kind = "input"}, %w: tensor<3x2x3xf32> {penstock.name = "w", penstock.kind = "input"}) -> tensor<3x4xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %empty = tensor.empty() : tensor<3x4xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x4xf32>) -> tensor<3x4xf32>
    %conv = window.slide %x by <dim 1, 4 windows of 3, step 2, apart 1, before 1> fill 0.000000e+00 : f32 {penstock.layer = "conv"} : tensor<2x7xf32> -> tensor<2x4x3xf32>
    %conv_1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%conv, %w : tensor<2x4x3xf32>, tensor<3x2x3xf32>) outs(%start : tensor<3x4xf32>) attrs =  {penstock.layer = "conv"} {
    ^bb0(%a: f32, %b: f32, %sum: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %sum, %p : f32
      linalg.yield %s : f32
    } -> tensor<3x4xf32>
    func.return %conv_1 : tensor<3x4xf32>
  }
}
