!stream0 = !stream.stream<vector<1x4xi8>, depth: 2>
!stream1 = !stream.stream<vector<1x1xi8>, depth: 2>
!stream2 = !stream.stream<vector<4x1xi8>, depth: 2>
!blocks0 = !stream.blocks<memref<4x8xi8>, count: 2>
builtin.module {
  stream.top "penstock_top" takes ["x", "output_0", "output_1"] as ["input", "output", "output"] lying [#itensor.layout<tile: [4, 8], word: [1, 4]>, #itensor.layout<tile: [4, 8], word: [1, 4]>, #itensor.layout<tile: [4, 8], word: [4, 1]>] attributes {directive.interfaces = [#directive.m_axi<bundle: 0, bits: 32, depth: 8, burst: 8, outstanding: 16>, #directive.m_axi<bundle: 1, bits: 32, depth: 8, burst: 8, outstanding: 16>, #directive.m_axi<bundle: 1, bits: 32, depth: 8, burst: 8, outstanding: 16>], directive.control = "s_axilite", directive.dataflow} {
  ^bb0(%x: memref<1x1x4x2xvector<1x4xi8>>, %output: memref<1x1x4x2xvector<1x4xi8>>, %output_1: memref<1x1x1x8xvector<4x1xi8>>):
    %load_x__rows = stream.stream "load_x__rows" {directive.fifo = #directive.fifo<registers>} : !stream0
    %rows__store = stream.stream "rows__store_0" {directive.fifo = #directive.fifo<registers>} : !stream0
    %load_x_group1__columns = stream.stream "load_x_group1__columns" {directive.fifo = #directive.fifo<registers>} : !stream1
    %columns__pack = stream.stream "columns__pack_1" {directive.fifo = #directive.fifo<registers>} : !stream1
    %pack_1__store = stream.stream "pack_1__store_1" {directive.fifo = #directive.fifo<registers>} : !stream2
    %load_x_group1_block = stream.blocks "load.x.group1.block" {directive.banks = #directive.banks<none, cyclic 4>, directive.storage = #directive.storage<lutram, ram_s2p>} : !blocks0
    stream.task "load_x" of "x" group 0 {
      nest.nest "load" <w0: 4, w1: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %0 = nest.load %x at (d0, d1) -> (0, 0, d0, d1) : memref<1x1x4x2xvector<1x4xi8>> -> vector<1x4xi8>
        nest.write %0 to %load_x__rows : vector<1x4xi8> to !stream0
      }
    }
    stream.task "rows" of "rows" group 0 {
      nest.nest "compute" <p0: 4, p1: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %1 = nest.read %load_x__rows : !stream0 -> vector<1x4xi8>
        %2 = nest.map %1 lanes [(d0, d1) -> (d0, d1)] : vector<1x4xi8> -> vector<1x4xi8> {
        ^bb0(%3: i8):
          %s = arith.addi %3, %3 : i8
          nest.yield %s : i8
        }
        nest.write %2 to %rows__store : vector<1x4xi8> to !stream0
      }
    }
    stream.task "store_0" of "output_0" group 0 {
      nest.nest "store" <w0: 4, w1: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %4 = nest.read %rows__store : !stream0 -> vector<1x4xi8>
        nest.store %4 to %output at (d0, d1) -> (0, 0, d0, d1) : vector<1x4xi8> to memref<1x1x4x2xvector<1x4xi8>>
      }
    }
    stream.task "load_x_group1_fetch" of "x" group 1 {
      nest.nest "fetch" <w0: 4, w1: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %5 = nest.load %x at (d0, d1) -> (0, 0, d0, d1) : memref<1x1x4x2xvector<1x4xi8>> -> vector<1x4xi8>
        nest.store %5 to %load_x_group1_block at (d0, d1) -> (d0, (d1 * 4)) : vector<1x4xi8> to !blocks0
      }
    }
    stream.task "load_x_group1_read" of "x" group 1 {
      nest.nest "read" <w0: 8, w1: 4> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %6 = nest.load %load_x_group1_block at (d0, d1) -> (d1, d0) : !blocks0 -> vector<1x1xi8>
        nest.write %6 to %load_x_group1__columns : vector<1x1xi8> to !stream1
      }
    }
    stream.task "columns" of "columns" group 1 {
      nest.nest "compute" <t1: 8, t0: 4> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %7 = nest.read %load_x_group1__columns : !stream1 -> vector<1x1xi8>
        %8 = nest.map %7 lanes [(d0, d1) -> (d0, d1)] : vector<1x1xi8> -> vector<1x1xi8> {
        ^bb0(%9: i8):
          %s_1 = arith.muli %9, %9 : i8
          nest.yield %s_1 : i8
        }
        nest.write %8 to %columns__pack : vector<1x1xi8> to !stream1
      }
    }
    stream.task "pack_1" of "pack.1" group 1 {
      %line = stream.buffer "line" {directive.banks = #directive.banks<complete 4, none>, directive.storage = #directive.storage<registers, any>} : memref<4x1xi8>
      nest.nest "pass" <w0: 8, w1: 4> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %10 = nest.read %columns__pack : !stream1 -> vector<1x1xi8>
        nest.store %10 to %line at (d0, d1) -> (d1, 0) : vector<1x1xi8> to memref<4x1xi8>
        %11 = nest.load %line at (d0, d1) -> (0, 0) when <d1 eq 3> : memref<4x1xi8> -> vector<4x1xi8>
        nest.write %11 to %pack_1__store when <d1 eq 3> : vector<4x1xi8> to !stream2
      }
    }
    stream.task "store_1" of "output_1" group 1 {
      nest.nest "store" <w0: 8> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %12 = nest.read %pack_1__store : !stream2 -> vector<4x1xi8>
        nest.store %12 to %output_1 at (d0) -> (0, 0, 0, d0) : vector<4x1xi8> to memref<1x1x1x8xvector<4x1xi8>>
      }
    }
  }
}
