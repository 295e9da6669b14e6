builtin.module {
  stream.top "penstock_top" takes ["unread", "x", "output_0"] as ["input", "input", "output"] lying [unit, #itensor.layout<tile: [4, 4], word: [4, 4]>, #itensor.layout<tile: [4, 6], word: [2, 2]>] attributes {directive.interfaces = [#directive.m_axi<bundle: 0, bits: 8, depth: 3, burst: 2, outstanding: 32>, #directive.m_axi<bundle: 1, bits: 128, depth: 1, burst: 2, outstanding: 32>, #directive.m_axi<bundle: 2, bits: 32, depth: 6, burst: 4, outstanding: 32>], directive.control = "s_axilite", directive.dataflow} {
  ^bb0(%unread: memref<3xi8>, %x: memref<1x1x1x1xvector<4x4xi8>>, %output: memref<1x1x2x3xvector<2x2xi8>>):
    %load_x__unpack_x = stream.stream "load_x__unpack_x" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<4x4xi8>, depth: 2>
    %unpack_x__fc0 = stream.stream "unpack_x__fc0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x2xi8>, depth: 2>
    %fc0__convert_fc0 = stream.stream "fc0__convert_fc0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x3xi32>, depth: 2>
    %convert_fc0__fc0_relu = stream.stream "convert_fc0__fc0_relu" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x2xi32>, depth: 2>
    %fc0_relu__pack = stream.stream "fc0_relu__pack_0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x2xi8>, depth: 2>
    %pack_0__store = stream.stream "pack_0__store_0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<2x2xi8>, depth: 2>
    %convert_fc0_block = stream.blocks "convert.fc0.block" {directive.banks = #directive.banks<none, cyclic 3>, directive.storage = #directive.storage<lutram, ram_s2p>} : !stream.blocks<memref<2x6xi32>, count: 2>
    stream.task "load_x" of "x" group 0 {
      nest.nest "load" <w0: 1> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %0 = nest.load %x at (d0) -> (0, 0, 0, 0) : memref<1x1x1x1xvector<4x4xi8>> -> vector<4x4xi8>
        nest.write %0 to %load_x__unpack_x : vector<4x4xi8> to !stream.stream<vector<4x4xi8>, depth: 2>
      }
    }
    stream.task "unpack_x" of "unpack.x" group 0 {
      %line = stream.buffer "line" {directive.banks = #directive.banks<complete 4, complete 2 word 2>, directive.storage = #directive.storage<registers, any>} : memref<4x4xi8>
      nest.nest "pass" <w0: 2, w1: 2, w2: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %1 = nest.read %load_x__unpack_x when <d0 eq 0, d1 eq 0, d2 eq 0> : !stream.stream<vector<4x4xi8>, depth: 2> -> vector<4x4xi8>
        nest.store %1 to %line at (d0, d1, d2) -> (0, 0) when <d0 eq 0, d1 eq 0, d2 eq 0> : vector<4x4xi8> to memref<4x4xi8>
        %2 = nest.load %line at (d0, d1, d2) -> (((d0 * 2) + d2), (d1 * 2)) : memref<4x4xi8> -> vector<1x2xi8>
        nest.write %2 to %unpack_x__fc0 : vector<1x2xi8> to !stream.stream<vector<1x2xi8>, depth: 2>
      }
    }
    stream.task "fc0" of "fc0" group 0 {
      %keep = stream.buffer "keep_0" {directive.banks = #directive.banks<none, whole 2>, directive.storage = #directive.storage<registers, any>} : memref<1x2xi8>
      %fc0_weight = stream.rom "rom_1" of "fc0.weight" {directive.banks = #directive.banks<word 3, word 2>, directive.storage = #directive.storage<lutram, rom_1p>} : memref<6x4xi8>
      %acc = stream.buffer "acc" {directive.banks = #directive.banks<none, word 3>, directive.storage = #directive.storage<lutram, ram_s2p>, directive.carried = #directive.carried<distance: 4>} : memref<2x6xi32>
      nest.nest "compute" <t0: 2, p2: 2, p0: 2, p1: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %3 = nest.read %unpack_x__fc0 when <d3 eq 0> : !stream.stream<vector<1x2xi8>, depth: 2> -> vector<1x2xi8>
        %4 = nest.load %keep at (d0, d1, d2, d3) -> (0, 0) : memref<1x2xi8> -> vector<1x2xi8>
        %5 = nest.select %3 else %4 when <d3 eq 0> : vector<1x2xi8>
        nest.store %3 to %keep at (d0, d1, d2, d3) -> (0, 0) when <d3 eq 0> : vector<1x2xi8> to memref<1x2xi8>
        %6 = nest.load %fc0_weight at (d0, d1, d2, d3) -> ((d3 * 3), (d1 * 2)) : memref<6x4xi8> -> vector<3x2xi8>
        %7 = nest.map %5, %6 lanes [(d0, d1, d2) -> (d0, d2), (d0, d1, d2) -> (d1, d2)] : vector<1x2xi8>, vector<3x2xi8> -> vector<1x3x2xi32> {
        ^bb0(%8: i8, %9: i8):
          %a = arith.extsi %8 : i8 to i32
          %b = arith.extsi %9 : i8 to i32
          %p = arith.muli %a, %b : i32
          nest.yield %p : i32
        }
        %10 = nest.reduce %7 along [2] : vector<1x3x2xi32> -> vector<1x3x1xi32> {
        ^bb0(%11: i32, %12: i32):
          %s = arith.addi %11, %12 : i32
          nest.yield %s : i32
        }
        %13 = nest.constant 0 : i32 -> vector<1x3xi32>
        %14 = nest.load %acc at (d0, d1, d2, d3) -> (d2, (d3 * 3)) : memref<2x6xi32> -> vector<1x3xi32>
        %15 = nest.select %13 else %14 when <d1 eq 0> : vector<1x3xi32>
        %16 = nest.map %15, %10 lanes [(d0, d1) -> (d0, d1), (d0, d1) -> (d0, d1, 0)] : vector<1x3xi32>, vector<1x3x1xi32> -> vector<1x3xi32> {
        ^bb0(%17: i32, %18: i32):
          %s_1 = arith.addi %17, %18 : i32
          nest.yield %s_1 : i32
        }
        nest.store %16 to %acc at (d0, d1, d2, d3) -> (d2, (d3 * 3)) : vector<1x3xi32> to memref<2x6xi32>
        nest.write %16 to %fc0__convert_fc0 when <d1 eq 1> : vector<1x3xi32> to !stream.stream<vector<1x3xi32>, depth: 2>
      }
    }
    stream.task "convert_fc0_write" of "convert.fc0" group 0 {
      nest.nest "write" <s0: 2, w1: 2, w2: 2> block_loops 1 attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %19 = nest.read %fc0__convert_fc0 : !stream.stream<vector<1x3xi32>, depth: 2> -> vector<1x3xi32>
        nest.store %19 to %convert_fc0_block at (d0, d1, d2) -> (d1, (d2 * 3)) : vector<1x3xi32> to !stream.blocks<memref<2x6xi32>, count: 2>
      }
    }
    stream.task "convert_fc0_read" of "convert.fc0" group 0 {
      nest.nest "read" <s0: 2, w1: 3, w2: 2> block_loops 1 attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %20 = nest.load %convert_fc0_block at (d0, d1, d2) -> (d2, (d1 * 2)) : !stream.blocks<memref<2x6xi32>, count: 2> -> vector<1x2xi32>
        nest.write %20 to %convert_fc0__fc0_relu : vector<1x2xi32> to !stream.stream<vector<1x2xi32>, depth: 2>
      }
    }
    stream.task "fc0_relu" of "fc0.relu" group 0 {
      %fc0_bias = stream.rom "rom_1" of "fc0.bias" {directive.banks = #directive.banks<word 2>, directive.storage = #directive.storage<lutram, rom_1p>} : memref<6xi32>
      nest.nest "compute" <t0: 2, p1: 3, p0: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %21 = nest.read %convert_fc0__fc0_relu : !stream.stream<vector<1x2xi32>, depth: 2> -> vector<1x2xi32>
        %22 = nest.load %fc0_bias at (d0, d1, d2) -> ((d1 * 2)) : memref<6xi32> -> vector<2xi32>
        %23 = nest.map %21, %22 lanes [(d0, d1) -> (d0, d1), (d0, d1) -> (d1)] : vector<1x2xi32>, vector<2xi32> -> vector<1x2xi8> {
        ^bb0(%24: i32, %25: i32):
          %t = arith.addi %24, %25 : i32
          %c = arith.constant 0 : i32
          %u = arith.maxsi %t, %c : i32
          %h = arith.constant 5 : i32
          %v = arith.shrsi %u, %h : i32
          %y = arith.trunci %v : i32 to i8
          nest.yield %y : i8
        }
        nest.write %23 to %fc0_relu__pack : vector<1x2xi8> to !stream.stream<vector<1x2xi8>, depth: 2>
      }
    }
    stream.task "pack_0" of "pack.0" group 0 {
      %line_1 = stream.buffer "line" {directive.banks = #directive.banks<complete 2, whole 2>, directive.storage = #directive.storage<registers, any>} : memref<2x2xi8>
      nest.nest "pass" <w0: 2, w1: 3, w2: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %26 = nest.read %fc0_relu__pack : !stream.stream<vector<1x2xi8>, depth: 2> -> vector<1x2xi8>
        nest.store %26 to %line_1 at (d0, d1, d2) -> (d2, 0) : vector<1x2xi8> to memref<2x2xi8>
        %27 = nest.load %line_1 at (d0, d1, d2) -> (0, 0) when <d2 eq 1> : memref<2x2xi8> -> vector<2x2xi8>
        nest.write %27 to %pack_0__store when <d2 eq 1> : vector<2x2xi8> to !stream.stream<vector<2x2xi8>, depth: 2>
      }
    }
    stream.task "store_0" of "output_0" group 0 {
      nest.nest "store" <w0: 2, w1: 3> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %28 = nest.read %pack_0__store : !stream.stream<vector<2x2xi8>, depth: 2> -> vector<2x2xi8>
        nest.store %28 to %output at (d0, d1) -> (0, 0, d0, d1) : vector<2x2xi8> to memref<1x1x2x3xvector<2x2xi8>>
      }
    }
  }
}
