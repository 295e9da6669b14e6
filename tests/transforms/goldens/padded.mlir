builtin.module {
  func.func @main(%unread: tensor<3xi8> {penstock.name = "unread", penstock.kind = "input"}, %in: tensor<4x8xi8> {penstock.name = "x", penstock.kind = "input"}, %fc0w: tensor<6x8xi8> {penstock.name = "fc0.weight", penstock.kind = "param"}, %fc0b: tensor<6xi32> {penstock.name = "fc0.bias", penstock.kind = "param"}) -> tensor<4x6xi8> {
    %fc0z = arith.constant 0 : i32
    %0 = tensor.empty() : tensor<4x6xi32>
    %1 = linalg.fill ins(%fc0z : i32) outs(%0 : tensor<4x6xi32>) -> tensor<4x6xi32>
    %fc0m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%in, %fc0w : tensor<4x8xi8>, tensor<6x8xi8>) outs(%1 : tensor<4x6xi32>) attrs =  {penstock.layer = "fc0"} {
    ^bb0(%x: i8, %w: i8, %acc: i32):
      %a = arith.extsi %x : i8 to i32
      %b = arith.extsi %w : i8 to i32
      %p = arith.muli %a, %b : i32
      %s = arith.addi %acc, %p : i32
      linalg.yield %s : i32
    } -> tensor<4x6xi32>
    %2 = tensor.empty() : tensor<4x6xi8>
    %fc0r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%fc0m, %fc0b : tensor<4x6xi32>, tensor<6xi32>) outs(%2 : tensor<4x6xi8>) attrs =  {penstock.layer = "fc0.relu"} {
    ^bb0(%x_1: i32, %b_1: i32, %old: i8):
      %t = arith.addi %x_1, %b_1 : i32
      %c = arith.constant 0 : i32
      %u = arith.maxsi %t, %c : i32
      %h = arith.constant 5 : i32
      %v = arith.shrsi %u, %h : i32
      %y = arith.trunci %v : i32 to i8
      linalg.yield %y : i8
    } -> tensor<4x6xi8>
    func.return %fc0r : tensor<4x6xi8>
  }
}
