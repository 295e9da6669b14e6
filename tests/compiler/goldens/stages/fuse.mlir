builtin.module {
  func.func @main(%x: tensor<8x16xi8> {penstock.name = "x", penstock.kind = "input"}) -> (tensor<8x16xi8>, tensor<8x16xi8>) {
    %0 = "itensor.kernel"(%x) <{sym_name = "group0", group = #builtin.int<0>}> ({
    ^bb0(%x_1: tensor<8x16xi8>):
      %1 = itensor.load "load.x" %x_1 : tensor<8x16xi8> -> !itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>
      %2 = "itensor.task"(%1) <{sym_name = "rows", schedule = #itensor.schedule<tile: [8, 16], unroll: [1, 4], order: [0, 1]>, trips = [#builtin.int<8>, #builtin.int<16>], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]}> ({
      ^bb0(%3: i8):
        %s = arith.addi %3, %3 : i8
        itensor.yield %s : i8
      }) : (!itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>) -> !itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>
      %4 = itensor.store "store.0" %2 : !itensor.itensor<1x4xi8, iter_space: [8, 4]*[1, 4], iter_map: (d0, d1) -> (d0, d1)> -> tensor<8x16xi8>
      itensor.yield %4 : tensor<8x16xi8>
    }) : (tensor<8x16xi8>) -> tensor<8x16xi8>
    %1 = "itensor.kernel"(%x) <{sym_name = "group1", group = #builtin.int<1>}> ({
    ^bb0(%x_1: tensor<8x16xi8>):
      %2 = itensor.load "load.x.group1" %x_1 : tensor<8x16xi8> -> !itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)>
      %3 = "itensor.task"(%2) <{sym_name = "columns", schedule = #itensor.schedule<tile: [1, 1], unroll: [1, 1], order: [1, 0]>, trips = [#builtin.int<8>, #builtin.int<16>], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]}> ({
      ^bb0(%4: i8):
        %s = arith.muli %4, %4 : i8
        itensor.yield %s : i8
      }) : (!itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)>) -> !itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)>
      %5 = itensor.converter "convert.columns" %3 : !itensor.itensor<1x1xi8, iter_space: [16, 8]*[1, 1], iter_map: (d0, d1) -> (d1, d0)> -> !itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)>
      %6 = "itensor.task"(%5) <{sym_name = "after", schedule = #itensor.schedule<tile: [8, 16], unroll: [1, 2], order: [0, 1]>, trips = [#builtin.int<8>, #builtin.int<16>], indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]}> ({
      ^bb0(%7: i8):
        %s_1 = arith.addi %7, %7 : i8
        itensor.yield %s_1 : i8
      }) : (!itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)>) -> !itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)>
      %8 = itensor.store "store.1" %6 : !itensor.itensor<1x2xi8, iter_space: [8, 8]*[1, 2], iter_map: (d0, d1) -> (d0, d1)> -> tensor<8x16xi8>
      itensor.yield %8 : tensor<8x16xi8>
    }) : (tensor<8x16xi8>) -> tensor<8x16xi8>
    func.return %0, %1 : tensor<8x16xi8>, tensor<8x16xi8>
  }
}
