builtin.module {
  func.func @main(%arg4: tensor<2x4xi8> {penstock.name = "x", penstock.kind = "input"}, %0: tensor<4x3xi8> {penstock.name = "hidden.0.weight", penstock.kind = "param"}, %1: tensor<3xi32> {penstock.name = "hidden.0.bias", penstock.kind = "param"}, %2: tensor<3xi32> {penstock.name = "hidden.0.relu.multiplier", penstock.kind = "param"}, %3: tensor<3x2xi8> {penstock.name = "head.weight", penstock.kind = "param"}, %4: tensor<2xi32> {penstock.name = "head.bias", penstock.kind = "param"}) -> tensor<2x2xi32> {
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
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8, %1, %2 : tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) outs(%16 : tensor<2x3xi8>) attrs =  {penstock.layer = "hidden.0.relu"} {
    ^bb0(%18: i32, %19: i32, %20: i32, %21: i8):
      %22 = arith.addi %18, %19 : i32
      %23 = arith.constant 0 : i32
      %24 = arith.maxsi %22, %23 : i32
      %25 = arith.extsi %24 : i32 to i64
      %26 = arith.extsi %20 : i32 to i64
      %27 = arith.muli %25, %26 : i64
      %28 = arith.constant 17179869184 : i64
      %29 = arith.addi %27, %28 : i64
      %30 = arith.constant 35 : i64
      %31 = arith.shrsi %29, %30 : i64
      %32 = arith.constant 127 : i64
      %33 = arith.minsi %31, %32 : i64
      %34 = arith.trunci %33 : i64 to i8
      linalg.yield %34 : i8
    } -> tensor<2x3xi8>
    %35 = arith.constant 0 : i32
    %36 = tensor.empty() : tensor<2x2xi32>
    %37 = linalg.fill ins(%35 : i32) outs(%36 : tensor<2x2xi32>) -> tensor<2x2xi32>
    %38 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%17, %3 : tensor<2x3xi8>, tensor<3x2xi8>) outs(%37 : tensor<2x2xi32>) attrs =  {penstock.layer = "head"} {
    ^bb0(%39: i8, %40: i8, %41: i32):
      %42 = arith.extsi %39 : i8 to i32
      %43 = arith.extsi %40 : i8 to i32
      %44 = arith.muli %42, %43 : i32
      %45 = arith.addi %41, %44 : i32
      linalg.yield %45 : i32
    } -> tensor<2x2xi32>
    %46 = tensor.empty() : tensor<2x2xi32>
    %47 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%38, %4 : tensor<2x2xi32>, tensor<2xi32>) outs(%46 : tensor<2x2xi32>) attrs =  {penstock.layer = "head.bias"} {
    ^bb0(%48: i32, %49: i32, %50: i32):
      %51 = arith.addi %48, %49 : i32
      linalg.yield %51 : i32
    } -> tensor<2x2xi32>
    func.return %47 : tensor<2x2xi32>
  }
}
