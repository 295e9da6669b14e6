builtin.module {
  "stream.top"() <{sym_name = "penstock_top", argument_names = ["unread", "x", "output_0"], argument_kinds = ["input", "input", "output"], layouts = [unit, #itensor.layout<tile: [2, 4], word: [2, 4]>, #itensor.layout<tile: [2, 6], word: [1, 2]>]}> ({
  ^bb0(%unread: memref<3xi8>, %x: memref<1x1x1x1xvector<2x4xi8>>, %output: memref<1x1x2x3xvector<1x2xi8>>):
    %load_x__unpack_x = stream.stream "load_x__unpack_x" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<2x4xi8>, depth: 2>
    %unpack_x__fc0 = stream.stream "unpack_x__fc0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x2xi8>, depth: 2>
    %fc0__convert_fc0 = stream.stream "fc0__convert_fc0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x3xi32>, depth: 2>
    %convert_fc0__fc0_relu = stream.stream "convert_fc0__fc0_relu" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x2xi32>, depth: 2>
    %fc0_relu__store = stream.stream "fc0_relu__store_0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x2xi8>, depth: 2>
    %convert_fc0_block = stream.blocks "convert.fc0.block" {directive.banks = #directive.banks<partition: none, cyclic 3>, directive.storage = #directive.storage<lutram, ram_s2p>} : !stream.blocks<memref<1x6xi32>, count: 2>
    "stream.task"() <{sym_name = "load_x", layer = "x", group = #builtin.int<0>}> ({
      "nest.nest"() <{sym_name = "load", loops = #nest.loops<w0: 1>, block_loops = #builtin.int<0>}> ({
        %0 = "nest.load"(%x) <{address = affine_map<(d0) -> (0, 0, 0, 0)>, when = #nest.when<>}> : (memref<1x1x1x1xvector<2x4xi8>>) -> vector<2x4xi8>
        "nest.write"(%0, %load_x__unpack_x) <{when = #nest.when<>}> : (vector<2x4xi8>, !stream.stream<vector<2x4xi8>, depth: 2>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
    "stream.task"() <{sym_name = "unpack_x", layer = "unpack.x", group = #builtin.int<0>}> ({
      %line = stream.buffer "line" {directive.banks = #directive.banks<partition: complete 2, complete 4>, directive.storage = #directive.storage<registers, any>} : memref<2x4xi8>
      "nest.nest"() <{sym_name = "pass", loops = #nest.loops<w0: 2, w1: 2>, block_loops = #builtin.int<0>}> ({
        %1 = "nest.read"(%load_x__unpack_x) <{when = #nest.when<d0 eq 0, d1 eq 0>}> : (!stream.stream<vector<2x4xi8>, depth: 2>) -> vector<2x4xi8>
        "nest.store"(%1, %line) <{address = affine_map<(d0, d1) -> (0, 0)>, when = #nest.when<d0 eq 0, d1 eq 0>}> : (vector<2x4xi8>, memref<2x4xi8>) -> ()
        %2 = "nest.load"(%line) <{address = affine_map<(d0, d1) -> (d1, (d0 * 2))>, when = #nest.when<>}> : (memref<2x4xi8>) -> vector<1x2xi8>
        "nest.write"(%2, %unpack_x__fc0) <{when = #nest.when<>}> : (vector<1x2xi8>, !stream.stream<vector<1x2xi8>, depth: 2>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
    "stream.task"() <{sym_name = "fc0", layer = "fc0", group = #builtin.int<0>}> ({
      %keep = stream.buffer "keep_0" {directive.banks = #directive.banks<partition: none, complete 2>, directive.storage = #directive.storage<registers, any>} : memref<1x2xi8>
      %fc0_weight = stream.rom "rom_1" of "fc0.weight" {directive.banks = #directive.banks<reshape: cyclic 3, cyclic 2>, directive.storage = #directive.storage<lutram, rom_1p>} : memref<6x4xi8>
      %acc = stream.buffer "acc" {directive.banks = #directive.banks<partition: none, cyclic 3>, directive.storage = #directive.storage<lutram, ram_s2p>, directive.carried = #directive.carried<distance: 4>} : memref<2x6xi32>
      "nest.nest"() <{sym_name = "compute", loops = #nest.loops<p2: 2, p0: 2, p1: 2>, block_loops = #builtin.int<0>}> ({
        %3 = "nest.read"(%unpack_x__fc0) <{when = #nest.when<d2 eq 0>}> : (!stream.stream<vector<1x2xi8>, depth: 2>) -> vector<1x2xi8>
        %4 = "nest.load"(%keep) <{address = affine_map<(d0, d1, d2) -> (0, 0)>, when = #nest.when<>}> : (memref<1x2xi8>) -> vector<1x2xi8>
        %5 = "nest.select"(%3, %4) <{when = #nest.when<d2 eq 0>}> : (vector<1x2xi8>, vector<1x2xi8>) -> vector<1x2xi8>
        "nest.store"(%3, %keep) <{address = affine_map<(d0, d1, d2) -> (0, 0)>, when = #nest.when<d2 eq 0>}> : (vector<1x2xi8>, memref<1x2xi8>) -> ()
        %6 = "nest.load"(%fc0_weight) <{address = affine_map<(d0, d1, d2) -> ((d2 * 3), (d0 * 2))>, when = #nest.when<>}> : (memref<6x4xi8>) -> vector<3x2xi8>
        %7 = "nest.map"(%5, %6) <{lanes = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>]}> ({
        ^bb0(%8: i8, %9: i8):
          %a = arith.extsi %8 : i8 to i32
          %b = arith.extsi %9 : i8 to i32
          %p = arith.muli %a, %b : i32
          nest.yield %p : i32
        }) : (vector<1x2xi8>, vector<3x2xi8>) -> vector<1x3x2xi32>
        %10 = "nest.reduce"(%7) <{dims = [#builtin.int<2>]}> ({
        ^bb0(%11: i32, %12: i32):
          %s = arith.addi %11, %12 : i32
          nest.yield %s : i32
        }) : (vector<1x3x2xi32>) -> vector<1x3x1xi32>
        %13 = "nest.constant"() <{value = 0 : i32}> : () -> vector<1x3xi32>
        %14 = "nest.load"(%acc) <{address = affine_map<(d0, d1, d2) -> (d1, (d2 * 3))>, when = #nest.when<>}> : (memref<2x6xi32>) -> vector<1x3xi32>
        %15 = "nest.select"(%13, %14) <{when = #nest.when<d0 eq 0>}> : (vector<1x3xi32>, vector<1x3xi32>) -> vector<1x3xi32>
        %16 = "nest.map"(%15, %10) <{lanes = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1, 0)>]}> ({
        ^bb0(%17: i32, %18: i32):
          %s_1 = arith.addi %17, %18 : i32
          nest.yield %s_1 : i32
        }) : (vector<1x3xi32>, vector<1x3x1xi32>) -> vector<1x3xi32>
        "nest.store"(%16, %acc) <{address = affine_map<(d0, d1, d2) -> (d1, (d2 * 3))>, when = #nest.when<>}> : (vector<1x3xi32>, memref<2x6xi32>) -> ()
        "nest.write"(%16, %fc0__convert_fc0) <{when = #nest.when<d0 eq 1>}> : (vector<1x3xi32>, !stream.stream<vector<1x3xi32>, depth: 2>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
    "stream.task"() <{sym_name = "convert_fc0_write", layer = "convert.fc0", group = #builtin.int<0>}> ({
      "nest.nest"() <{sym_name = "write", loops = #nest.loops<s0: 2, w1: 2>, block_loops = #builtin.int<1>}> ({
        %19 = "nest.read"(%fc0__convert_fc0) <{when = #nest.when<>}> : (!stream.stream<vector<1x3xi32>, depth: 2>) -> vector<1x3xi32>
        "nest.store"(%19, %convert_fc0_block) <{address = affine_map<(d0, d1) -> (0, (d1 * 3))>, when = #nest.when<>}> : (vector<1x3xi32>, !stream.blocks<memref<1x6xi32>, count: 2>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
    "stream.task"() <{sym_name = "convert_fc0_read", layer = "convert.fc0", group = #builtin.int<0>}> ({
      "nest.nest"() <{sym_name = "read", loops = #nest.loops<s0: 2, w1: 3>, block_loops = #builtin.int<1>}> ({
        %20 = "nest.load"(%convert_fc0_block) <{address = affine_map<(d0, d1) -> (0, (d1 * 2))>, when = #nest.when<>}> : (!stream.blocks<memref<1x6xi32>, count: 2>) -> vector<1x2xi32>
        "nest.write"(%20, %convert_fc0__fc0_relu) <{when = #nest.when<>}> : (vector<1x2xi32>, !stream.stream<vector<1x2xi32>, depth: 2>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
    "stream.task"() <{sym_name = "fc0_relu", layer = "fc0.relu", group = #builtin.int<0>}> ({
      %fc0_bias = stream.rom "rom_1" of "fc0.bias" {directive.banks = #directive.banks<reshape: cyclic 2>, directive.storage = #directive.storage<lutram, rom_1p>} : memref<6xi32>
      "nest.nest"() <{sym_name = "compute", loops = #nest.loops<p0: 2, p1: 3>, block_loops = #builtin.int<0>}> ({
        %21 = "nest.read"(%convert_fc0__fc0_relu) <{when = #nest.when<>}> : (!stream.stream<vector<1x2xi32>, depth: 2>) -> vector<1x2xi32>
        %22 = "nest.load"(%fc0_bias) <{address = affine_map<(d0, d1) -> ((d1 * 2))>, when = #nest.when<>}> : (memref<6xi32>) -> vector<2xi32>
        %23 = "nest.map"(%21, %22) <{lanes = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]}> ({
        ^bb0(%24: i32, %25: i32):
          %t = arith.addi %24, %25 : i32
          %c = arith.constant 0 : i32
          %u = arith.maxsi %t, %c : i32
          %h = arith.constant 5 : i32
          %v = arith.shrsi %u, %h : i32
          %y = arith.trunci %v : i32 to i8
          nest.yield %y : i8
        }) : (vector<1x2xi32>, vector<2xi32>) -> vector<1x2xi8>
        "nest.write"(%23, %fc0_relu__store) <{when = #nest.when<>}> : (vector<1x2xi8>, !stream.stream<vector<1x2xi8>, depth: 2>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
    "stream.task"() <{sym_name = "store_0", layer = "output_0", group = #builtin.int<0>}> ({
      "nest.nest"() <{sym_name = "store", loops = #nest.loops<w0: 2, w1: 3>, block_loops = #builtin.int<0>}> ({
        %26 = "nest.read"(%fc0_relu__store) <{when = #nest.when<>}> : (!stream.stream<vector<1x2xi8>, depth: 2>) -> vector<1x2xi8>
        "nest.store"(%26, %output) <{address = affine_map<(d0, d1) -> (0, 0, d0, d1)>, when = #nest.when<>}> : (vector<1x2xi8>, memref<1x1x2x3xvector<1x2xi8>>) -> ()
      }) {directive.pipeline = #directive.pipeline<ii: 1>} : () -> ()
    }) : () -> ()
  }) {directive.interfaces = [#directive.m_axi<bundle: 0, bits: 8, depth: 3, burst: 2, outstanding: 32>, #directive.m_axi<bundle: 1, bits: 64, depth: 1, burst: 2, outstanding: 32>, #directive.m_axi<bundle: 2, bits: 16, depth: 6, burst: 4, outstanding: 32>], directive.control = "s_axilite", directive.dataflow} : () -> ()
}
