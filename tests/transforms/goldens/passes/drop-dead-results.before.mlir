#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %lowest = arith.constant -3.0e+38 : f32
  %first = arith.constant 0 : i64
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<4xi64>
  %values = linalg.fill ins(%lowest : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %places = linalg.fill ins(%first : i64) outs(%f : tensor<4xi64>) -> tensor<4xi64>
  %max, %argmax = "linalg.generic"(%x, %values, %places) <{indexing_maps = [#ij, #i, #i],
      iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>],
      operandSegmentSizes = array<i32: 1, 2>}> ({
  ^bb0(%v: f32, %best: f32, %place: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %better = arith.cmpf ogt, %v, %best : f32
    %larger = arith.maximumf %v, %best : f32
    %next = arith.select %better, %here, %place : i64
    linalg.yield %larger, %next : f32, i64
  }) {penstock.layer = "max"} : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>)
  func.return %max : tensor<4xf32>
}
