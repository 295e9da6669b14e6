!stream0 = !stream.stream<vector<1xi8>, depth: 2>
builtin.module {
  stream.top "penstock_top" takes ["A", "B"] as ["input", "output"] lying [unit, unit] {
  ^bb0(%A: memref<4xi8>, %B: memref<4xi32>):
    %z = stream.stream "z_0" : !stream0
    %z_1 = stream.stream "z_1" : !stream0
    stream.task "load" of "load" group 0 {
      nest.nest "run" <r0_i: 2, r1_j: 2> {
        %0 = nest.load %A at (d0, d1) -> ((d0 * 2)) when <d1 eq 0> : memref<4xi8> -> vector<1xi8>
        nest.write %0 to %z when <d1 eq 0> : vector<1xi8> to !stream0
        %1 = nest.load %A at (d0, d1) -> (((d0 * 2) + 1)) when <d1 ne 0> : memref<4xi8> -> vector<1xi8>
        nest.write %1 to %z_1 when <d1 ne 0> : vector<1xi8> to !stream0
      }
    }
    stream.task "store" of "store" group 0 {
      nest.nest "run" <r0_i: 2, r1_j: 2> {
        %2 = nest.read %z when <d1 eq 0> : !stream0 -> vector<1xi8>
        %3 = nest.read %z_1 when <d1 eq 1> : !stream0 -> vector<1xi8>
        %4 = nest.select %3 else %2 when <d1 eq 1> : vector<1xi8>
        %5 = nest.map %4 lanes [(d0) -> (d0)] : vector<1xi8> -> vector<1xi32> {
        ^bb0(%6: i8):
          %7 = arith.extsi %6 : i8 to i32
          nest.yield %7 : i32
        }
        %8 = nest.map %5 lanes [(d0) -> (d0)] : vector<1xi32> -> vector<1xi32> {
        ^bb0(%9: i32):
          %10 = arith.constant 2 : i32
          %11 = arith.muli %9, %10 : i32
          nest.yield %11 : i32
        }
        nest.store %8 to %B at (d0, d1) -> (((d0 * 2) + d1)) : vector<1xi32> to memref<4xi32>
      }
    }
  }
}
