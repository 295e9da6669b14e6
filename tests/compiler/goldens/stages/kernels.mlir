builtin.module {
  func.func @main(%x: tensor<1x1x8x2xvector<1x8xi8>> {penstock.name = "x", penstock.kind = "input", penstock.layout = #itensor.layout<tile: [8, 16], word: [1, 8]>}) -> (tensor<1x1x8x2xvector<1x8xi8>> {penstock.layout = #itensor.layout<tile: [8, 16], word: [1, 8]>}, tensor<1x1x8x2xvector<1x8xi8>> {penstock.layout = #itensor.layout<tile: [8, 16], word: [1, 8]>}) {
    %0 = itensor.kernel "group0" group 0 takes %x : (tensor<1x1x8x2xvector<1x8xi8>>) -> tensor<1x1x8x2xvector<1x8xi8>> {
    ^bb0(%x_1: tensor<1x1x8x2xvector<1x8xi8>>):
      %1 = itensor.load "load.x" %x_1 in <tile: [8, 16], word: [1, 8]> : tensor<1x1x8x2xvector<1x8xi8>> -> !itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)>
      %2 = itensor.converter "unpack.x" %1 : !itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)> -> !itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>
      %3 = itensor.task "rows" %2 trips [8, 16] iterators [parallel, parallel] maps [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)] schedule <tile: [8, 16], unroll: [1, 4], order: [0, 1]> : (!itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>) -> !itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)> {
      ^bb0(%4: i8):
        %s = arith.addi %4, %4 : i8
        itensor.yield %s : i8
      }
      %5 = itensor.converter "pack.0" %3 : !itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)> -> !itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)>
      %6 = itensor.store "store.0" %5 in <tile: [8, 16], word: [1, 8]> : !itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)> -> tensor<1x1x8x2xvector<1x8xi8>>
      itensor.yield %6 : tensor<1x1x8x2xvector<1x8xi8>>
    }
    %1 = itensor.kernel "group1" group 1 takes %x : (tensor<1x1x8x2xvector<1x8xi8>>) -> tensor<1x1x8x2xvector<1x8xi8>> {
    ^bb0(%x_1: tensor<1x1x8x2xvector<1x8xi8>>):
      %2 = itensor.load "load.x.group1" %x_1 in <tile: [8, 16], word: [1, 8]> through <1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)> : tensor<1x1x8x2xvector<1x8xi8>> -> !itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)>
      %3 = itensor.task "columns" %2 trips [8, 16] iterators [parallel, parallel] maps [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)] schedule <tile: [1, 1], unroll: [1, 1], order: [1, 0]> : (!itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)>) -> !itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)> {
      ^bb0(%4: i8):
        %s = arith.muli %4, %4 : i8
        itensor.yield %s : i8
      }
      %5 = itensor.converter "convert.columns" %3 : !itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)> -> !itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)>
      %6 = itensor.task "after" %5 trips [8, 16] iterators [parallel, parallel] maps [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)] schedule <tile: [8, 16], unroll: [1, 2], order: [0, 1]> : (!itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)>) -> !itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)> {
      ^bb0(%7: i8):
        %s_1 = arith.addi %7, %7 : i8
        itensor.yield %s_1 : i8
      }
      %8 = itensor.converter "pack.1" %6 : !itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)> -> !itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)>
      %9 = itensor.store "store.1" %8 in <tile: [8, 16], word: [1, 8]> : !itensor.itensor<1x8xi8, iter_space: [8, 2]*[1, 8], iter_map: (d0, d1) -> (d0, d1)> -> tensor<1x1x8x2xvector<1x8xi8>>
      itensor.yield %9 : tensor<1x1x8x2xvector<1x8xi8>>
    }
    func.return %0, %1 : tensor<1x1x8x2xvector<1x8xi8>>, tensor<1x1x8x2xvector<1x8xi8>>
  }
}
