builtin.module {
  func.func @main(%x: tensor<3x8xf32> {penstock.name = "x", penstock.kind = "input"}, %w: tensor<8xf32> {penstock.name = "w", penstock.kind = "param"}) -> tensor<3xf32> {
    %start = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<3x8xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<3x8xf32>, tensor<8xf32>) outs(%0 : tensor<3x8xf32>) attrs =  {penstock.layer = "body"} {
    ^bb0(%a: f32, %b: f32, %old: f32):
      %t = math.exp %a : f32
      %1 = linalg.index 1 : index
      %2 = arith.constant 7 : index
      %3 = arith.cmpi ult, %1, %2 : index
      %4 = arith.constant 0.000000e+00 : f32
      %5 = arith.select %3, %t, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<3x8xf32>
    %6 = tensor.empty() : tensor<3xf32>
    %7 = linalg.fill ins(%start : f32) outs(%6 : tensor<3xf32>) -> tensor<3xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<3x8xf32>) outs(%7 : tensor<3xf32>) attrs =  {penstock.layer = "sum"} {
    ^bb0(%a_1: f32, %r: f32):
      %n = arith.addf %r, %a_1 : f32
      linalg.yield %n : f32
    } -> tensor<3xf32>
    func.return %s : tensor<3xf32>
  }
}
