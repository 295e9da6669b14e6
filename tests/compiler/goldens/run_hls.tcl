# Run in this folder. Vitis HLS up to 2024.2: vitis_hls -f run_hls.tcl
# From 2023.2 on, and alone from 2025.1 on:    vitis-run --mode hls --tcl run_hls.tcl
#
# PENSTOCK_HLS_STEPS names the steps, by default csynth alone: csim csynth cosim export implement.
# csim and cosim run the frames in ../csim/run/in*.bin and compare with ../csim/run/out*.bin, which the C simulation
# of the package has left there. export writes penstock_top.xo, which ../link/connectivity.cfg links on platforms with a
# shell. Depths, storage and lanes are pragmas in the C++ and nowhere else.
set steps csynth
if {[info exists ::env(PENSTOCK_HLS_STEPS)]} { set steps $::env(PENSTOCK_HLS_STEPS) }
set root [file dirname [file dirname [file normalize [info script]]]]
set frames "-C $root csim/run/in0.bin -- csim/run/rtl0.bin -- csim/run/out0.bin"

open_project -reset penstock_hls
set_top penstock_top
add_files penstock_top.cpp
add_files -tb ../csim/penstock_csim.cpp
add_files -tb ../csim/csim_main.cpp
open_solution -reset solution1 -flow_target vitis
set_part {xcu55c-fsvh2892-2L-e}
create_clock -period 3.333 -name default
set_clock_uncertainty 27%

foreach step $steps {
    switch -- $step {
        csim { csim_design -argv $frames }
        csynth { csynth_design }
        cosim { cosim_design -argv $frames }
        export { export_design -format xo -output penstock_top.xo }
        implement { export_design -flow impl -rtl verilog }
        default { error "unknown step $step; use csim, csynth, cosim, export or implement" }
    }
}
exit
