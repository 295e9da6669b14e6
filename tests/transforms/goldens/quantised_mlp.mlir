builtin.module {
  func.func @main(%arg4: tensor<2x4xi8> {penstock.name = "x", penstock.kind = "input"}, %0: tensor<4x3xi8> {penstock.name = "hidden.0.weight", penstock.kind = "param"}, %1: tensor<3xi32> {penstock.name = "hidden.0.bias", penstock.kind = "param"}, %2: tensor<3xi16> {penstock.name = "hidden.0.relu.multiplier", penstock.kind = "param"}, %3: tensor<3x2xi8> {penstock.name = "head.weight", penstock.kind = "param"}, %4: tensor<2xi32> {penstock.name = "head.bias", penstock.kind = "param"}) -> tensor<2x2xi32> {
    %5 = arith.constant 0 : i32
    %6 = tensor.empty() : tensor<2x3xi32>
    %7 = linalg.fill ins(%5 : i32) outs(%6 : tensor<2x3xi32>) -> tensor<2x3xi32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg4, %0 : tensor<2x4xi8>, tensor<4x3xi8>) outs(%7 : tensor<2x3xi32>) attrs =  {penstock.layer = "hidden.0"} {
    ^bb0(%9: i8, %10: i8, %11: i32):
      %12 = arith.extsi %9 : i8 to i32
      %13 = arith.extsi %10 : i8 to i32
      %14 = arith.muli %12, %13 : i32
      %15 = arith.addi %11, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<2x3xi32>
    %16 = tensor.empty() : tensor<2x3xi8>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8, %1, %2 : tensor<2x3xi32>, tensor<3xi32>, tensor<3xi16>) outs(%16 : tensor<2x3xi8>) attrs =  {penstock.layer = "hidden.0.relu"} {
    ^bb0(%18: i32, %19: i32, %20: i16, %21: i8):
      %22 = arith.addi %18, %19 : i32
      %23 = arith.constant 0 : i32
      %24 = arith.maxsi %22, %23 : i32
      %25 = arith.trunci %24 : i32 to i17
      %26 = arith.extsi %25 : i17 to i64
      %27 = arith.extsi %20 : i16 to i64
      %28 = arith.muli %26, %27 : i64
      %29 = arith.constant 262144 : i64
      %30 = arith.addi %28, %29 : i64
      %31 = arith.constant 19 : i64
      %32 = arith.shrsi %30, %31 : i64
      %33 = arith.constant 127 : i64
      %34 = arith.minsi %32, %33 : i64
      %35 = arith.trunci %34 : i64 to i8
      linalg.yield %35 : i8
    } -> tensor<2x3xi8>
    %36 = arith.constant 0 : i32
    %37 = tensor.empty() : tensor<2x2xi32>
    %38 = linalg.fill ins(%36 : i32) outs(%37 : tensor<2x2xi32>) -> tensor<2x2xi32>
    %39 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%17, %3 : tensor<2x3xi8>, tensor<3x2xi8>) outs(%38 : tensor<2x2xi32>) attrs =  {penstock.layer = "head"} {
    ^bb0(%40: i8, %41: i8, %42: i32):
      %43 = arith.extsi %40 : i8 to i32
      %44 = arith.extsi %41 : i8 to i32
      %45 = arith.muli %43, %44 : i32
      %46 = arith.addi %42, %45 : i32
      linalg.yield %46 : i32
    } -> tensor<2x2xi32>
    %47 = tensor.empty() : tensor<2x2xi32>
    %48 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%39, %4 : tensor<2x2xi32>, tensor<2xi32>) outs(%47 : tensor<2x2xi32>) attrs =  {penstock.layer = "head.bias"} {
    ^bb0(%49: i32, %50: i32, %51: i32):
      %52 = arith.addi %49, %50 : i32
      linalg.yield %52 : i32
    } -> tensor<2x2xi32>
    func.return %48 : tensor<2x2xi32>
  }
}
