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
    ^bb0(%11: f32, %12: f32, %arg30: f32):
      %arg29 = arith.addf %11, %12 : f32
      %13 = arith.constant 0.000000e+00 : f32
      %14 = arith.maximumf %arg29, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<2x3xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%10, %1 : tensor<2x3xf32>, tensor<3x3xf32>) outs(%6 : tensor<2x3xf32>) attrs =  {penstock.layer = "hidden.1"} {
    ^bb0(%arg24: f32, %arg25: f32, %arg26: f32):
      %16 = arith.mulf %arg24, %arg25 : f32
      %17 = arith.addf %arg26, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<2x3xf32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%15, %arg3, %10 : tensor<2x3xf32>, tensor<3xf32>, tensor<2x3xf32>) outs(%3 : tensor<2x3xf32>) attrs =  {penstock.layer = "hidden.1.relu"} {
    ^bb0(%19: f32, %20: f32, %21: f32, %arg17: f32):
      %arg18 = arith.addf %19, %20 : f32
      %arg16 = arith.addf %arg18, %21 : f32
      %22 = arith.constant 0.000000e+00 : f32
      %23 = arith.maximumf %arg16, %22 : f32
      linalg.yield %23 : f32
    } -> tensor<2x3xf32>
    %24 = tensor.empty() : tensor<2x2xf32>
    %25 = arith.constant 0.000000e+00 : f32
    %26 = tensor.empty() : tensor<2x2xf32>
    %27 = linalg.fill ins(%25 : f32) outs(%26 : tensor<2x2xf32>) -> tensor<2x2xf32>
    %28 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%18, %2 : tensor<2x3xf32>, tensor<3x2xf32>) outs(%27 : tensor<2x2xf32>) attrs =  {penstock.layer = "head"} {
    ^bb0(%arg10: f32, %arg11: f32, %arg12: f32):
      %29 = arith.mulf %arg10, %arg11 : f32
      %30 = arith.addf %arg12, %29 : f32
      linalg.yield %30 : f32
    } -> tensor<2x2xf32>
    %31 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%28, %arg5 : tensor<2x2xf32>, tensor<2xf32>) outs(%24 : tensor<2x2xf32>) attrs =  {penstock.layer = "head.bias"} {
    ^bb0(%arg7: f32, %arg8: f32, %arg9: f32):
      %32 = arith.addf %arg7, %arg8 : f32
      linalg.yield %32 : f32
    } -> tensor<2x2xf32>
    func.return %31 : tensor<2x2xf32>
  }
}
