#map0 = affine_map<(d0, d1) -> (d0, d1)>
builtin.module {
  func.func @main(%x: tensor<8x4xf32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x2xf32> {
    %0 = tensor.extract_slice %x[2, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %1 = tensor.empty() : tensor<4x2xf32>
    %transpose = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, #map0], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<2x4xf32>) outs(%1 : tensor<4x2xf32>) attrs =  {penstock.layer = "transpose_2"} {
    ^bb0(%v: f32, %o: f32):
      linalg.yield %v : f32
    } -> tensor<4x2xf32>
    %f = tensor.empty() : tensor<4x2xf32>
    %double_ = linalg.generic {indexing_maps = [#map0, #map0], iterator_types = ["parallel", "parallel"]} ins(%transpose : tensor<4x2xf32>) outs(%f : tensor<4x2xf32>) attrs =  {penstock.layer = "double"} {
    ^bb0(%v_1: f32, %o_1: f32):
      %s = arith.addf %v_1, %v_1 : f32
      linalg.yield %s : f32
    } -> tensor<4x2xf32>
    func.return %double_ : tensor<4x2xf32>
  }
}
