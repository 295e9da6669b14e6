#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x6xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x6xf32> {
    %0 = tensor.empty() : tensor<4x6xi8>
    %quantise = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%0 : tensor<4x6xi8>) attrs =  {penstock.layer = "quantise"} {
    ^bb0(%1: f32, %2: i8):
      %3 = arith.constant 4.000000e+00 : f32
      %scaled = arith.mulf %1, %3 : f32
      %4 = math.roundeven %scaled : f32
      %5 = arith.constant 2.550000e+02 : f32
      %lower = arith.minimumf %4, %5 : f32
      %6 = arith.constant 0.000000e+00 : f32
      %both = arith.maximumf %lower, %6 : f32
      %7 = arith.fptosi %both : f32 to i32
      %8 = arith.constant -128 : i32
      %9 = arith.addi %7, %8 : i32
      %10 = arith.trunci %9 : i32 to i8
      linalg.yield %10 : i8
    } -> tensor<4x6xi8>
    %mean = window.slide %quantise by <dim 1, 6 windows of 3, step 1, apart 1, before 1> fill -128 : i8 {penstock.layer = "mean"} : tensor<4x6xi8> -> tensor<4x6x3xi8>
    %11 = arith.constant 0 : i32
    %12 = tensor.empty() : tensor<4x6xi32>
    %13 = linalg.fill ins(%11 : i32) outs(%12 : tensor<4x6xi32>) -> tensor<4x6xi32>
    %mean_1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%mean : tensor<4x6x3xi8>) outs(%13 : tensor<4x6xi32>) attrs =  {penstock.layer = "mean"} {
    ^bb0(%14: i8, %15: i32):
      %16 = arith.extsi %14 : i8 to i32
      %17 = arith.addi %15, %16 : i32
      linalg.yield %17 : i32
    } -> tensor<4x6xi32>
    %18 = tensor.empty() : tensor<4x6xf32>
    %add = linalg.generic {indexing_maps = [#map0, #map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%mean_1, %quantise : tensor<4x6xi32>, tensor<4x6xi8>) outs(%18 : tensor<4x6xf32>) attrs =  {penstock.layer = "add"} {
    ^bb0(%19: i32, %20: i8, %21: f32):
      %22 = arith.constant 384 : i32
      %23 = arith.addi %19, %22 : i32
      %24 = arith.extsi %20 : i8 to i32
      %25 = arith.constant 128 : i32
      %26 = arith.addi %24, %25 : i32
      %27 = arith.constant 1 : i32
      %28 = arith.shli %26, %27 : i32
      %29 = arith.addi %23, %28 : i32
      %30 = arith.constant 3 : i32
      %31 = arith.shrsi %29, %30 : i32
      %32 = arith.andi %31, %27 : i32
      %33 = arith.addi %29, %30 : i32
      %34 = arith.addi %33, %32 : i32
      %35 = arith.shrsi %34, %30 : i32
      %36 = arith.sitofp %35 : i32 to f32
      linalg.yield %36 : f32
    } -> tensor<4x6xf32>
    func.return %add : tensor<4x6xf32>
  }
}
