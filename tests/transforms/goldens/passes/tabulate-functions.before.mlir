builtin.module {
  func.func @main(%x : tensor<4x6xi8> {penstock.name = "x", penstock.kind = "input"}, %y : tensor<4x6xi8> {penstock.name = "y", penstock.kind = "input"}) -> (tensor<4x6xi8>, tensor<4x6xf32>) {
    %out = tensor.empty() : tensor<4x6xi8>
    %sigmoid = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xi8>) outs(%out : tensor<4x6xi8>) attrs = {penstock.layer = "sigmoid"} {
    ^bb0(%a: i8, %b: i8):
      %one = arith.constant 1.0 : f32
      %step = arith.constant 0.03125 : f32
      %levels = arith.constant 127.0 : f32
      %real = arith.sitofp %a : i8 to f32
      %scaled = arith.mulf %real, %step : f32
      %less = arith.negf %scaled : f32
      %power = math.exp %less : f32
      %more = arith.addf %power, %one : f32
      %part = arith.divf %one, %more : f32
      %large = arith.mulf %part, %levels : f32
      %near = math.roundeven %large : f32
      %whole = arith.fptosi %near : f32 to i8
      linalg.yield %whole : i8
    } -> tensor<4x6xi8>
    %sums = tensor.empty() : tensor<4x6xf32>
    %gated = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%sigmoid, %y : tensor<4x6xi8>, tensor<4x6xi8>) outs(%sums : tensor<4x6xf32>) attrs = {penstock.layer = "gated"} {
    ^bb0(%a: i8, %b: i8, %c: f32):
      %sum = arith.addi %a, %b : i8
      %real = arith.sitofp %sum : i8 to f32
      %other = arith.sitofp %b : i8 to f32
      %curved = math.tanh %real : f32
      %product = arith.mulf %curved, %other : f32
      linalg.yield %product : f32
    } -> tensor<4x6xf32>
    func.return %sigmoid, %gated : tensor<4x6xi8>, tensor<4x6xf32>
  }
}
