#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<4x8xf32> {penstock.name = "x", penstock.kind = "input"}, %first: tensor<1x8xf32> {penstock.name = "first", penstock.kind = "param"}) -> tensor<5x8xf32> {
    %e = tensor.empty() : tensor<4x8xf32>
    %double_ = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) attrs =  {penstock.layer = "double"} {
    ^bb0(%v: f32, %o: f32):
      %s = arith.addf %v, %v : f32
      linalg.yield %s : f32
    } -> tensor<4x8xf32>
    %0 = tensor.empty() : tensor<1x8xf32>
    %tensor_concat_part = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%first : tensor<1x8xf32>) outs(%0 : tensor<1x8xf32>) attrs =  {penstock.layer = "tensor.concat.part"} {
    ^bb0(%1: f32, %2: f32):
      linalg.yield %1 : f32
    } -> tensor<1x8xf32>
    %all = tensor.concat dim(0) %tensor_concat_part, %double_ : (tensor<1x8xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
    func.return %all : tensor<5x8xf32>
  }
}
