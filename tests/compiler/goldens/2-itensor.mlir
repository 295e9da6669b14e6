builtin.module {
  func.func @main(%unread: tensor<3xi8> {penstock.name = "unread", penstock.kind = "input"}, %in: tensor<1x1x1x1xvector<4x4xi8>> {penstock.name = "x", penstock.kind = "input", penstock.layout = #itensor.layout<tile: [4, 4], word: [4, 4]>}, %fc0w: tensor<6x4xi8> {penstock.name = "fc0.weight", penstock.kind = "param"}, %fc0b: tensor<6xi32> {penstock.name = "fc0.bias", penstock.kind = "param"}) -> (tensor<1x1x2x3xvector<2x2xi8>> {penstock.layout = #itensor.layout<tile: [4, 6], word: [2, 2]>}) {
    %0 = itensor.kernel "group0" group 0 takes %in, %fc0w, %fc0b : (tensor<1x1x1x1xvector<4x4xi8>>, tensor<6x4xi8>, tensor<6xi32>) -> tensor<1x1x2x3xvector<2x2xi8>> {
    ^bb0(%in_1: tensor<1x1x1x1xvector<4x4xi8>>, %fc0w_1: tensor<6x4xi8>, %fc0b_1: tensor<6xi32>):
      %1 = itensor.load "load.x" %in_1 in <tile: [4, 4], word: [4, 4]> : tensor<1x1x1x1xvector<4x4xi8>> -> !itensor.itensor<4x4xi8, iter_space: []*[], iter_map: () -> (0, 0)>
      %2 = itensor.converter "unpack.x" %1 : !itensor.itensor<4x4xi8, iter_space: []*[], iter_map: () -> (0, 0)> -> !itensor.itensor<1x2xi8, iter_space: [2, 2, 2]*[2, 2, 1], iter_map: (d0, d1, d2) -> ((d0 + d2), d1)>
      %3 = itensor.task "fc0" %2, %fc0w_1 trips [4, 6, 4] iterators [parallel, parallel, reduction] maps [(d0, d1, d2) -> (d0, d2), (d0, d1, d2) -> (d1, d2), (d0, d1, d2) -> (d0, d1)] schedule <tile: [2, 6, 4], unroll: [1, 3, 2], order: [0, 1, 2]> init 0 : i32 : (!itensor.itensor<1x2xi8, iter_space: [2, 2, 2]*[2, 2, 1], iter_map: (d0, d1, d2) -> ((d0 + d2), d1)>, tensor<6x4xi8>) -> !itensor.itensor<1x3xi32, iter_space: [4, 2]*[1, 3], iter_map: (d0, d1) -> (d0, d1)> {
      ^bb0(%4: i8, %5: i8, %6: i32):
        %a = arith.extsi %4 : i8 to i32
        %b = arith.extsi %5 : i8 to i32
        %p = arith.muli %a, %b : i32
        %s = arith.addi %6, %p : i32
        itensor.yield %s : i32
      }
      %7 = itensor.converter "convert.fc0" %3 : !itensor.itensor<1x3xi32, iter_space: [4, 2]*[1, 3], iter_map: (d0, d1) -> (d0, d1)> -> !itensor.itensor<1x2xi32, iter_space: [2, 3, 2]*[2, 2, 1], iter_map: (d0, d1, d2) -> ((d0 + d2), d1)>
      %8 = itensor.task "fc0.relu" %7, %fc0b_1 trips [4, 6] iterators [parallel, parallel] maps [(d0, d1) -> (d0, d1), (d0, d1) -> (d1), (d0, d1) -> (d0, d1)] schedule <tile: [2, 6], unroll: [1, 2], order: [1, 0]> : (!itensor.itensor<1x2xi32, iter_space: [2, 3, 2]*[2, 2, 1], iter_map: (d0, d1, d2) -> ((d0 + d2), d1)>, tensor<6xi32>) -> !itensor.itensor<1x2xi8, iter_space: [2, 3, 2]*[2, 2, 1], iter_map: (d0, d1, d2) -> ((d0 + d2), d1)> {
      ^bb0(%9: i32, %10: i32):
        %t = arith.addi %9, %10 : i32
        %c = arith.constant 0 : i32
        %u = arith.maxsi %t, %c : i32
        %h = arith.constant 5 : i32
        %v = arith.shrsi %u, %h : i32
        %y = arith.trunci %v : i32 to i8
        itensor.yield %y : i8
      }
      %11 = itensor.converter "pack.0" %8 : !itensor.itensor<1x2xi8, iter_space: [2, 3, 2]*[2, 2, 1], iter_map: (d0, d1, d2) -> ((d0 + d2), d1)> -> !itensor.itensor<2x2xi8, iter_space: [2, 3]*[2, 2], iter_map: (d0, d1) -> (d0, d1)>
      %12 = itensor.store "store.0" %11 in <tile: [4, 6], word: [2, 2]> : !itensor.itensor<2x2xi8, iter_space: [2, 3]*[2, 2], iter_map: (d0, d1) -> (d0, d1)> -> tensor<1x1x2x3xvector<2x2xi8>>
      itensor.yield %12 : tensor<1x1x2x3xvector<2x2xi8>>
    }
    func.return %0 : tensor<1x1x2x3xvector<2x2xi8>>
  }
}
