builtin.module {
  func.func @main(%x: tensor<8xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %double_ = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) attrs =  {penstock.layer = "double"} {
    ^bb0(%v: f32, %o: f32):
      %s = arith.addf %v, %v : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    func.return %double_ : tensor<8xf32>
  }
}
