builtin.module {
  func.func @main(%arg0: tensor<2x3x3xf32> {penstock.name = "weight", penstock.kind = "param"}, %arg1: tensor<5x5xf32> {penstock.name = "input", penstock.kind = "input"}) -> (tensor<1x1x1x1x3x3xvector<2x1x1xf32>> {penstock.layout = #itensor.layout<tile: [2, 3, 3], word: [2, 1, 1]>}) {
    %0 = itensor.kernel "group0" group 0 takes %arg0, %arg1 : (tensor<2x3x3xf32>, tensor<5x5xf32>) -> tensor<1x1x1x1x3x3xvector<2x1x1xf32>> {
    ^bb0(%arg0_1: tensor<2x3x3xf32>, %arg1_1: tensor<5x5xf32>):
      %1 = itensor.load "load.input" %arg1_1 : tensor<5x5xf32> -> !itensor.itensor<1x1xf32, iter_space: [5, 5]*[1, 1], iter_map: (d0, d1) -> (d0, d1)>
      %2 = window.slide "input.windows0" %1 by <dim 0, 3 windows of 3, step 2, apart 1, before 1> fill 0.000000e+00 : f32 : !itensor.itensor<1x1xf32, iter_space: [5, 5]*[1, 1], iter_map: (d0, d1) -> (d0, d1)> -> !itensor.itensor<1x1x3xf32, iter_space: [3, 5]*[1, 1], iter_map: (d0, d1) -> (d0, d1, 0)>
      %3 = window.slide "input.windows0.windows1" %2 by <dim 1, 3 windows of 3, step 2, apart 1, before 1> fill 0.000000e+00 : f32 : !itensor.itensor<1x1x3xf32, iter_space: [3, 5]*[1, 1], iter_map: (d0, d1) -> (d0, d1, 0)> -> !itensor.itensor<1x1x3x3xf32, iter_space: [3, 3]*[1, 1], iter_map: (d0, d1) -> (d0, d1, 0, 0)>
      %4 = itensor.converter "convert.input.windows0.windows1" %3 : !itensor.itensor<1x1x3x3xf32, iter_space: [3, 3]*[1, 1], iter_map: (d0, d1) -> (d0, d1, 0, 0)> -> !itensor.itensor<1x1x1x1xf32, iter_space: [3, 3, 3, 3]*[1, 1, 1, 1], iter_map: (d0, d1, d2, d3) -> (d0, d1, d2, d3)>
      %5 = itensor.task "convolution" %4, %arg0_1 trips [2, 3, 3, 3, 3] iterators [parallel, parallel, parallel, reduction, reduction] maps [(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4), (d0, d1, d2, d3, d4) -> (d0, d3, d4), (d0, d1, d2, d3, d4) -> (d0, d1, d2)] schedule <tile: [2, 1, 1, 3, 3], unroll: [1, 1, 1, 1, 1], order: [1, 2, 0, 3, 4]> init 0.000000e+00 : f32 : (!itensor.itensor<1x1x1x1xf32, iter_space: [3, 3, 3, 3]*[1, 1, 1, 1], iter_map: (d0, d1, d2, d3) -> (d0, d1, d2, d3)>, tensor<2x3x3xf32>) -> !itensor.itensor<1x1x1xf32, iter_space: [3, 3, 2]*[1, 1, 1], iter_map: (d0, d1, d2) -> (d2, d0, d1)> {
      ^bb0(%6: f32, %7: f32, %8: f32):
        %9 = arith.mulf %6, %7 : f32
        %10 = arith.addf %8, %9 : f32
        itensor.yield %10 : f32
      }
      %11 = itensor.converter "pack.0" %5 : !itensor.itensor<1x1x1xf32, iter_space: [3, 3, 2]*[1, 1, 1], iter_map: (d0, d1, d2) -> (d2, d0, d1)> -> !itensor.itensor<2x1x1xf32, iter_space: [3, 3]*[1, 1], iter_map: (d0, d1) -> (0, d0, d1)>
      %12 = itensor.store "store.0" %11 in <tile: [2, 3, 3], word: [2, 1, 1]> : !itensor.itensor<2x1x1xf32, iter_space: [3, 3]*[1, 1], iter_map: (d0, d1) -> (0, d0, d1)> -> tensor<1x1x1x1x3x3xvector<2x1x1xf32>>
      itensor.yield %12 : tensor<1x1x1x1x3x3xvector<2x1x1xf32>>
    }
    func.return %0 : tensor<1x1x1x1x3x3xvector<2x1x1xf32>>
  }
}
