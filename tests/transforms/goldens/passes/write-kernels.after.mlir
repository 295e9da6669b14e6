!itensor0 = !itensor.itensor<1x4xi8, iter_space: [4, 2]*[1, 4], iter_map: (d0, d1) -> (d0, d1)>
!itensor1 = !itensor.itensor<1x1xi8, iter_space: [8, 4]*[1, 1], iter_map: (d0, d1) -> (d1, d0)>
!itensor2 = !itensor.itensor<4x1xi8, iter_space: [8]*[1], iter_map: (d0) -> (0, d0)>
builtin.module {
  func.func @main(%x: tensor<1x1x4x2xvector<1x4xi8>> {penstock.name = "x", penstock.kind = "input", penstock.layout = #itensor.layout<tile: [4, 8], word: [1, 4]>}) -> (tensor<1x1x4x2xvector<1x4xi8>> {penstock.layout = #itensor.layout<tile: [4, 8], word: [1, 4]>}, tensor<1x1x1x8xvector<4x1xi8>> {penstock.layout = #itensor.layout<tile: [4, 8], word: [4, 1]>}) {
    %group0 = itensor.kernel "group0" group 0 takes %x : (tensor<1x1x4x2xvector<1x4xi8>>) -> tensor<1x1x4x2xvector<1x4xi8>> {
    ^bb0(%x_1: tensor<1x1x4x2xvector<1x4xi8>>):
      %load_x = itensor.load "load.x" %x_1 in <tile: [4, 8], word: [1, 4]> : tensor<1x1x4x2xvector<1x4xi8>> -> !itensor0
      %rows = itensor.task "rows" %load_x trips [4, 8] iterators [parallel, parallel] maps [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)] schedule <tile: [4, 8], unroll: [1, 4], order: [0, 1]> : (!itensor0) -> !itensor0 {
      ^bb0(%0: i8):
        %s = arith.addi %0, %0 : i8
        itensor.yield %s : i8
      }
      %store = itensor.store "store.0" %rows in <tile: [4, 8], word: [1, 4]> : !itensor0 -> tensor<1x1x4x2xvector<1x4xi8>>
      itensor.yield %store : tensor<1x1x4x2xvector<1x4xi8>>
    }
    %group1 = itensor.kernel "group1" group 1 takes %x : (tensor<1x1x4x2xvector<1x4xi8>>) -> tensor<1x1x1x8xvector<4x1xi8>> {
    ^bb0(%x_1: tensor<1x1x4x2xvector<1x4xi8>>):
      %load_x_group1 = itensor.load "load.x.group1" %x_1 in <tile: [4, 8], word: [1, 4]> through <1x4xi8, iter_space: [4, 2]*[1, 4], iter_map: (d0, d1) -> (d0, d1)> : tensor<1x1x4x2xvector<1x4xi8>> -> !itensor1  // two blocks of 4 x 8, 0 shared loops; 25 elements alive at most
      %columns = itensor.task "columns" %load_x_group1 trips [4, 8] iterators [parallel, parallel] maps [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1)] schedule <tile: [1, 1], unroll: [1, 1], order: [1, 0]> : (!itensor1) -> !itensor1 {
      ^bb0(%0: i8):
        %s = arith.muli %0, %0 : i8
        itensor.yield %s : i8
      }
      %pack = itensor.converter "pack.1" %columns : !itensor1 -> !itensor2  // one nest that keeps 4 x 1 elements
      %store = itensor.store "store.1" %pack in <tile: [4, 8], word: [4, 1]> : !itensor2 -> tensor<1x1x1x8xvector<4x1xi8>>
      itensor.yield %store : tensor<1x1x1x8xvector<4x1xi8>>
    }
    func.return %group0, %group1 : tensor<1x1x4x2xvector<1x4xi8>>, tensor<1x1x1x8xvector<4x1xi8>>
  }
}
