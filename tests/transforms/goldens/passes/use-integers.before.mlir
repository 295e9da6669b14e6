builtin.module {
  func.func @main(%x : tensor<4x6xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x6xf32> {
    %rounded = tensor.empty() : tensor<4x6xf32>
    %whole = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%rounded : tensor<4x6xf32>) attrs = {penstock.layer = "quantise"} {
    ^bb0(%a: f32, %b: f32):
      %factor = arith.constant 4.0 : f32
      %scaled = arith.mulf %a, %factor : f32
      %near = math.roundeven %scaled : f32
      %most = arith.constant 255.0 : f32
      %least = arith.constant 0.0 : f32
      %lower = arith.minimumf %near, %most : f32
      %both = arith.maximumf %lower, %least : f32
      %step = arith.constant 0.25 : f32
      %real = arith.mulf %both, %step : f32
      linalg.yield %real : f32
    } -> tensor<4x6xf32>
    %zero = arith.constant 0.0 : f32
    %sums = tensor.empty() : tensor<4x6xf32>
    %filled = linalg.fill ins(%zero : f32) outs(%sums : tensor<4x6xf32>) -> tensor<4x6xf32>
    %windows = window.slide %whole by <dim 1, 6 windows of 3, step 1, apart 1, before 1> fill 0.0 : f32 {penstock.layer = "mean"} : tensor<4x6xf32> -> tensor<4x6x3xf32>
    %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%windows : tensor<4x6x3xf32>) outs(%filled : tensor<4x6xf32>) attrs = {penstock.layer = "mean"} {
    ^bb0(%a: f32, %b: f32):
      %total = arith.addf %b, %a : f32
      linalg.yield %total : f32
    } -> tensor<4x6xf32>
    %out = tensor.empty() : tensor<4x6xf32>
    %result = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%sum, %whole : tensor<4x6xf32>, tensor<4x6xf32>) outs(%out : tensor<4x6xf32>) attrs = {penstock.layer = "add"} {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %part = arith.constant 0.5 : f32
      %half = arith.mulf %a, %part : f32
      %total = arith.addf %half, %b : f32
      %near = math.roundeven %total : f32
      linalg.yield %near : f32
    } -> tensor<4x6xf32>
    func.return %result : tensor<4x6xf32>
  }
}
