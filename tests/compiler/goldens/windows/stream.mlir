builtin.module {
  stream.top "penstock_top" takes ["input", "output_0"] as ["input", "output"] lying [unit, #itensor.layout<tile: [2, 3, 3], word: [2, 1, 1]>] attributes {directive.interfaces = [#directive.m_axi<bundle: 0, bits: 32, depth: 25, burst: 16, outstanding: 8>, #directive.m_axi<bundle: 1, bits: 64, depth: 9, burst: 8, outstanding: 16>], directive.control = "s_axilite", directive.dataflow} {
  ^bb0(%input_: memref<5x5xf32>, %output: memref<1x1x1x1x3x3xvector<2x1x1xf32>>):
    %load_input__input_windows0 = stream.stream "load_input__input_windows0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x1xf32>, depth: 2>
    %input_windows0__input_windows0_windows1 = stream.stream "input_windows0__input_windows0_windows1" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x1x3xf32>, depth: 2>
    %input_windows0_windows1__convert_input_windows0_windows1 = stream.stream "input_windows0_windows1__convert_input_windows0_windows1" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x1x3x3xf32>, depth: 2>
    %convert_input_windows0_windows1__convolution = stream.stream "convert_input_windows0_windows1__convolution" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x1x1x1xf32>, depth: 2>
    %convolution__pack = stream.stream "convolution__pack_0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<1x1x1xf32>, depth: 2>
    %pack_0__store = stream.stream "pack_0__store_0" {directive.fifo = #directive.fifo<registers>} : !stream.stream<vector<2x1x1xf32>, depth: 2>
    stream.task "load_input" of "input" group 0 {
      nest.nest "load" <w0: 5, w1: 5> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %0 = nest.load %input_ at (d0, d1) -> (d0, d1) : memref<5x5xf32> -> vector<1x1xf32>
        nest.write %0 to %load_input__input_windows0 : vector<1x1xf32> to !stream.stream<vector<1x1xf32>, depth: 2>
      }
    }
    stream.task "input_windows0" of "input.windows0" group 0 {
      %line = stream.buffer "line_0" {directive.banks = #directive.banks<none, none>, directive.storage = #directive.storage<lutram, ram_s2p>, directive.carried = #directive.carried<distance: 5>} : memref<1x5xf32>
      %line_1 = stream.buffer "line_1" {directive.banks = #directive.banks<none, none>, directive.storage = #directive.storage<lutram, ram_s2p>, directive.carried = #directive.carried<distance: 5>} : memref<1x5xf32>
      nest.nest "slide" <at: 7, w0: 5> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %1 = nest.read %load_input__input_windows0 when <d0 ge 1, d0 le 5> : !stream.stream<vector<1x1xf32>, depth: 2> -> vector<1x1xf32>
        %2 = nest.constant 0.000000e+00 : f32 -> vector<1x1xf32>
        %3 = nest.select %1 else %2 when <d0 ge 1, d0 le 5> : vector<1x1xf32>
        %4 = nest.load %line at (d0, d1) -> (0, d1) : memref<1x5xf32> -> vector<1x1xf32>
        %5 = nest.load %line_1 at (d0, d1) -> (0, d1) : memref<1x5xf32> -> vector<1x1xf32>
        nest.store %5 to %line at (d0, d1) -> (0, d1) : vector<1x1xf32> to memref<1x5xf32>
        nest.store %3 to %line_1 at (d0, d1) -> (0, d1) : vector<1x1xf32> to memref<1x5xf32>
        %6 = nest.stack %4, %5, %3 by <dim 0, from 0, 1 windows of 3, step 2, apart 1> : vector<1x1xf32>, vector<1x1xf32>, vector<1x1xf32> -> vector<1x1x3xf32>
        nest.write %6 to %input_windows0__input_windows0_windows1 when <d0 ge 2, d0 mod 2 eq 0> : vector<1x1x3xf32> to !stream.stream<vector<1x1x3xf32>, depth: 2>
      }
    }
    stream.task "input_windows0_windows1" of "input.windows0.windows1" group 0 {
      %line_2 = stream.buffer "line_0" {directive.banks = #directive.banks<none, none, whole 3>, directive.storage = #directive.storage<registers, any>} : memref<1x1x3xf32>
      %line_3 = stream.buffer "line_1" {directive.banks = #directive.banks<none, none, whole 3>, directive.storage = #directive.storage<registers, any>} : memref<1x1x3xf32>
      nest.nest "slide" <w0: 3, at: 7> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %7 = nest.read %input_windows0__input_windows0_windows1 when <d1 ge 1, d1 le 5> : !stream.stream<vector<1x1x3xf32>, depth: 2> -> vector<1x1x3xf32>
        %8 = nest.constant 0.000000e+00 : f32 -> vector<1x1x3xf32>
        %9 = nest.select %7 else %8 when <d1 ge 1, d1 le 5> : vector<1x1x3xf32>
        %10 = nest.load %line_2 at (d0, d1) -> (0, 0, 0) : memref<1x1x3xf32> -> vector<1x1x3xf32>
        %11 = nest.load %line_3 at (d0, d1) -> (0, 0, 0) : memref<1x1x3xf32> -> vector<1x1x3xf32>
        nest.store %11 to %line_2 at (d0, d1) -> (0, 0, 0) : vector<1x1x3xf32> to memref<1x1x3xf32>
        nest.store %9 to %line_3 at (d0, d1) -> (0, 0, 0) : vector<1x1x3xf32> to memref<1x1x3xf32>
        %12 = nest.stack %10, %11, %9 by <dim 1, from 0, 1 windows of 3, step 2, apart 1> : vector<1x1x3xf32>, vector<1x1x3xf32>, vector<1x1x3xf32> -> vector<1x1x3x3xf32>
        nest.write %12 to %input_windows0_windows1__convert_input_windows0_windows1 when <d1 ge 2, d1 mod 2 eq 0> : vector<1x1x3x3xf32> to !stream.stream<vector<1x1x3x3xf32>, depth: 2>
      }
    }
    stream.task "convert_input_windows0_windows1" of "convert.input.windows0.windows1" group 0 {
      %line_4 = stream.buffer "line" {directive.banks = #directive.banks<none, none, complete 3, complete 3>, directive.storage = #directive.storage<registers, any>} : memref<1x1x3x3xf32>
      nest.nest "pass" <w0: 3, w1: 3, w2: 3, w3: 3> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %13 = nest.read %input_windows0_windows1__convert_input_windows0_windows1 when <d2 eq 0, d3 eq 0> : !stream.stream<vector<1x1x3x3xf32>, depth: 2> -> vector<1x1x3x3xf32>
        nest.store %13 to %line_4 at (d0, d1, d2, d3) -> (0, 0, 0, 0) when <d2 eq 0, d3 eq 0> : vector<1x1x3x3xf32> to memref<1x1x3x3xf32>
        %14 = nest.load %line_4 at (d0, d1, d2, d3) -> (0, 0, d2, d3) : memref<1x1x3x3xf32> -> vector<1x1x1x1xf32>
        nest.write %14 to %convert_input_windows0_windows1__convolution : vector<1x1x1x1xf32> to !stream.stream<vector<1x1x1x1xf32>, depth: 2>
      }
    }
    stream.task "convolution" of "convolution" group 0 {
      %keep = stream.buffer "keep_0" {directive.banks = #directive.banks<none, none, none, none>, directive.storage = #directive.storage<registers, any>} : memref<1x1x1x1xf32>
      %weight = stream.rom "rom_1" of "weight" {directive.banks = #directive.banks<none, none, none>, directive.storage = #directive.storage<lutram, rom_1p>} : memref<2x3x3xf32>
      %acc = stream.buffer "acc" {directive.banks = #directive.banks<none, none, none>, directive.storage = #directive.storage<lutram, ram_s2p>, directive.carried = #directive.carried<distance: 2>} : memref<2x1x1xf32>
      nest.nest "compute" <t1: 3, t2: 3, p3: 3, p4: 3, p0: 2> attributes {directive.pipeline = #directive.pipeline<ii: 4>} {
        %15 = nest.read %convert_input_windows0_windows1__convolution when <d4 eq 0> : !stream.stream<vector<1x1x1x1xf32>, depth: 2> -> vector<1x1x1x1xf32>
        %16 = nest.load %keep at (d0, d1, d2, d3, d4) -> (0, 0, 0, 0) : memref<1x1x1x1xf32> -> vector<1x1x1x1xf32>
        %17 = nest.select %15 else %16 when <d4 eq 0> : vector<1x1x1x1xf32>
        nest.store %15 to %keep at (d0, d1, d2, d3, d4) -> (0, 0, 0, 0) when <d4 eq 0> : vector<1x1x1x1xf32> to memref<1x1x1x1xf32>
        %18 = nest.load %weight at (d0, d1, d2, d3, d4) -> (d4, d2, d3) : memref<2x3x3xf32> -> vector<1x1x1xf32>
        %19 = nest.map %17, %18 lanes [(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4), (d0, d1, d2, d3, d4) -> (d0, d3, d4)] : vector<1x1x1x1xf32>, vector<1x1x1xf32> -> vector<1x1x1x1x1xf32> {
        ^bb0(%20: f32, %21: f32):
          %22 = arith.mulf %20, %21 : f32
          nest.yield %22 : f32
        }
        %23 = nest.constant 0.000000e+00 : f32 -> vector<1x1x1xf32>
        %24 = nest.load %acc at (d0, d1, d2, d3, d4) -> (d4, 0, 0) : memref<2x1x1xf32> -> vector<1x1x1xf32>
        %25 = nest.select %23 else %24 when <d2 eq 0, d3 eq 0> : vector<1x1x1xf32>
        %26 = nest.map %25, %19 lanes [(d0, d1, d2) -> (d0, d1, d2), (d0, d1, d2) -> (d0, d1, d2, 0, 0)] : vector<1x1x1xf32>, vector<1x1x1x1x1xf32> -> vector<1x1x1xf32> {
        ^bb0(%27: f32, %28: f32):
          %29 = arith.addf %27, %28 : f32
          nest.yield %29 : f32
        }
        nest.store %26 to %acc at (d0, d1, d2, d3, d4) -> (d4, 0, 0) : vector<1x1x1xf32> to memref<2x1x1xf32>
        nest.write %26 to %convolution__pack when <d2 eq 2, d3 eq 2> : vector<1x1x1xf32> to !stream.stream<vector<1x1x1xf32>, depth: 2>
      }
    }
    stream.task "pack_0" of "pack.0" group 0 {
      %line_5 = stream.buffer "line" {directive.banks = #directive.banks<complete 2, none, none>, directive.storage = #directive.storage<registers, any>} : memref<2x1x1xf32>
      nest.nest "pass" <w0: 3, w1: 3, w2: 2> attributes {directive.pipeline = #directive.pipeline<ii: 1, flushes>} {
        %30 = nest.read %convolution__pack : !stream.stream<vector<1x1x1xf32>, depth: 2> -> vector<1x1x1xf32>
        nest.store %30 to %line_5 at (d0, d1, d2) -> (d2, 0, 0) : vector<1x1x1xf32> to memref<2x1x1xf32>
        %31 = nest.load %line_5 at (d0, d1, d2) -> (0, 0, 0) when <d2 eq 1> : memref<2x1x1xf32> -> vector<2x1x1xf32>
        nest.write %31 to %pack_0__store when <d2 eq 1> : vector<2x1x1xf32> to !stream.stream<vector<2x1x1xf32>, depth: 2>
      }
    }
    stream.task "store_0" of "output_0" group 0 {
      nest.nest "store" <w0: 3, w1: 3> attributes {directive.pipeline = #directive.pipeline<ii: 1>} {
        %32 = nest.read %pack_0__store : !stream.stream<vector<2x1x1xf32>, depth: 2> -> vector<2x1x1xf32>
        nest.store %32 to %output at (d0, d1) -> (0, 0, 0, 0, d0, d1) : vector<2x1x1xf32> to memref<1x1x1x1x3x3xvector<2x1x1xf32>>
      }
    }
  }
}
