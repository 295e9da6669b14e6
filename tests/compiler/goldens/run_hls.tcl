# Vitis HLS up to 2024.x: vitis_hls -f run_hls.tcl; from 2023.2: vitis-run --mode hls --tcl run_hls.tcl
open_project -reset penstock_hls
set_top penstock_top
add_files penstock_top.cpp
open_solution -reset solution1 -flow_target vitis
set_part {xcu55c-fsvh2892-2L-e}
create_clock -period 3.333 -name default
set_clock_uncertainty 27%
csynth_design
exit
