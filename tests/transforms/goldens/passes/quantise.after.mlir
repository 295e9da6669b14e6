builtin.module {
  func.func @main(%x: tensor<4x8xi8> {penstock.name = "x", penstock.kind = "input"}, %w: tensor<6x8xi8> {penstock.name = "w", penstock.kind = "param"}) -> tensor<4x6xi32> {
    %0 = arith.constant 0 : i32
    %1 = tensor.empty() : tensor<4x6xi32>
    %2 = linalg.fill ins(%0 : i32) outs(%1 : tensor<4x6xi32>) -> tensor<4x6xi32>
    %dense = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x8xi8>, tensor<6x8xi8>) outs(%2 : tensor<4x6xi32>) attrs =  {penstock.layer = "dense"} {
    ^bb0(%3: i8, %4: i8, %5: i32):
      %6 = arith.extsi %3 : i8 to i32
      %7 = arith.extsi %4 : i8 to i32
      %8 = arith.muli %6, %7 : i32
      %9 = arith.addi %5, %8 : i32
      linalg.yield %9 : i32
    } -> tensor<4x6xi32>
    func.return %dense : tensor<4x6xi32>
  }
}
