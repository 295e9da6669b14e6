builtin.module {
  func.func @main(%0: tensor<4x3xf32> {penstock.name = "hidden.0.weight", penstock.kind = "param"}, %arg1: tensor<3xf32> {penstock.name = "hidden.0.bias", penstock.kind = "param"}, %1: tensor<3x3xf32> {penstock.name = "hidden.1.weight", penstock.kind = "param"}, %arg3: tensor<3xf32> {penstock.name = "hidden.1.bias", penstock.kind = "param"}, %2: tensor<3x2xf32> {penstock.name = "head.weight", penstock.kind = "param"}, %arg5: tensor<2xf32> {penstock.name = "head.bias", penstock.kind = "param"}, %arg6: tensor<2x4xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<2x2xf32> {
    %3 = tensor.empty() : tensor<2x3xf32>
    %4 = arith.constant 0.000000e+00 : f32
    %5 = tensor.empty() : tensor<2x3xf32>
    %6 = linalg.fill ins(%4 : f32) outs(%5 : tensor<2x3xf32>) -> tensor<2x3xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg6, %0 : tensor<2x4xf32>, tensor<4x3xf32>) outs(%6 : tensor<2x3xf32>) attrs =  {penstock.layer = "hidden.0"} {
    ^bb0(%arg34: f32, %arg35: f32, %arg36: f32):
      %8 = arith.mulf %arg34, %arg35 : f32
      %9 = arith.addf %arg36, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<2x3xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7, %arg1 : tensor<2x3xf32>, tensor<3xf32>) outs(%3 : tensor<2x3xf32>) attrs =  {penstock.layer = "hidden.0.relu"} {
    ^bb0(%arg31: f32, %arg32: f32, %arg30: f32):
      %arg29 = arith.addf %arg31, %arg32 : f32
      %11 = arith.constant 0.000000e+00 : f32
      %12 = arith.maximumf %arg29, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<2x3xf32>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%10, %1 : tensor<2x3xf32>, tensor<3x3xf32>) outs(%6 : tensor<2x3xf32>) attrs =  {penstock.layer = "hidden.1"} {
    ^bb0(%arg24: f32, %arg25: f32, %arg26: f32):
      %14 = arith.mulf %arg24, %arg25 : f32
      %15 = arith.addf %arg26, %14 : f32
      linalg.yield %15 : f32
    } -> tensor<2x3xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%13, %arg3, %10 : tensor<2x3xf32>, tensor<3xf32>, tensor<2x3xf32>) outs(%3 : tensor<2x3xf32>) attrs =  {penstock.layer = "hidden.1.relu"} {
    ^bb0(%arg21: f32, %arg22: f32, %arg19: f32, %arg17: f32):
      %arg18 = arith.addf %arg21, %arg22 : f32
      %arg16 = arith.addf %arg18, %arg19 : f32
      %17 = arith.constant 0.000000e+00 : f32
      %18 = arith.maximumf %arg16, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<2x3xf32>
    %19 = tensor.empty() : tensor<2x2xf32>
    %20 = arith.constant 0.000000e+00 : f32
    %21 = tensor.empty() : tensor<2x2xf32>
    %22 = linalg.fill ins(%20 : f32) outs(%21 : tensor<2x2xf32>) -> tensor<2x2xf32>
    %23 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%16, %2 : tensor<2x3xf32>, tensor<3x2xf32>) outs(%22 : tensor<2x2xf32>) attrs =  {penstock.layer = "head"} {
    ^bb0(%arg10: f32, %arg11: f32, %arg12: f32):
      %24 = arith.mulf %arg10, %arg11 : f32
      %25 = arith.addf %arg12, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x2xf32>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%23, %arg5 : tensor<2x2xf32>, tensor<2xf32>) outs(%19 : tensor<2x2xf32>) attrs =  {penstock.layer = "head.bias"} {
    ^bb0(%arg7: f32, %arg8: f32, %arg9: f32):
      %27 = arith.addf %arg7, %arg8 : f32
      linalg.yield %27 : f32
    } -> tensor<2x2xf32>
    func.return %26 : tensor<2x2xf32>
  }
}
