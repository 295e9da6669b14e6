#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x8xf32> {
    %e = tensor.empty() : tensor<4x8xf32>
    %wave = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "wave"} {
    ^bb0(%v: f32, %o: f32):
      %0 = arith.mulf %v, %v : f32
      %cube = arith.mulf %0, %v : f32
      %1 = arith.constant 1.000000e+00 : f32
      %2 = arith.addf %cube, %1 : f32
      %3 = arith.subf %2, %1 : f32
      %4 = math.log %2 : f32
      %5 = arith.cmpf oeq, %3, %cube : f32
      %6 = arith.divf %cube, %3 : f32
      %7 = arith.mulf %4, %6 : f32
      %8 = arith.select %5, %4, %7 : f32
      %9 = arith.constant 0.000000e+00 : f32
      %10 = arith.cmpf oeq, %3, %9 : f32
      %little = arith.select %10, %cube, %8 : f32
      %11 = arith.constant 0.318309873 : f32
      %12 = arith.mulf %v, %11 : f32
      %13 = math.roundeven %12 : f32
      %14 = arith.constant 3.140625 : f32
      %15 = arith.mulf %13, %14 : f32
      %16 = arith.subf %v, %15 : f32
      %17 = arith.constant 0.000967502594 : f32
      %18 = arith.mulf %13, %17 : f32
      %19 = arith.subf %16, %18 : f32
      %20 = arith.constant 1.50995803e-07 : f32
      %21 = arith.mulf %13, %20 : f32
      %22 = arith.subf %19, %21 : f32
      %23 = arith.constant -1.600000e+00 : f32
      %24 = arith.maximumf %22, %23 : f32
      %25 = arith.constant 1.600000e+00 : f32
      %26 = arith.minimumf %24, %25 : f32
      %27 = arith.mulf %26, %26 : f32
      %28 = arith.constant 2.63038146e-06 : f32
      %29 = arith.mulf %27, %28 : f32
      %30 = arith.constant -0.000198213675 : f32
      %31 = arith.addf %29, %30 : f32
      %32 = arith.mulf %31, %27 : f32
      %33 = arith.constant 0.00833323225 : f32
      %34 = arith.addf %32, %33 : f32
      %35 = arith.mulf %34, %27 : f32
      %36 = arith.constant -0.166666657 : f32
      %37 = arith.addf %35, %36 : f32
      %38 = arith.mulf %27, %37 : f32
      %39 = arith.mulf %26, %38 : f32
      %40 = arith.addf %26, %39 : f32
      %41 = arith.constant 5.000000e-01 : f32
      %42 = arith.mulf %13, %41 : f32
      %43 = math.floor %42 : f32
      %44 = arith.subf %42, %43 : f32
      %45 = arith.constant -4.000000e+00 : f32
      %46 = arith.mulf %44, %45 : f32
      %47 = arith.addf %46, %1 : f32
      %s = arith.mulf %40, %47 : f32
      %y = arith.addf %little, %s : f32
      linalg.yield %y : f32
    } -> tensor<4x8xf32>
    func.return %wave : tensor<4x8xf32>
  }
}
