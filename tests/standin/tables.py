"""Commands and options that each release of the tools takes; what is not in these tables is refused.

From AMD's guides UG1399 and UG1393 of the releases and from logs of public projects. A value is the number of words
behind an option; a release is the first that has it, and where there are two, the first that no longer has it.
"""

from __future__ import annotations

Release = tuple[int, int]
RELEASES: tuple[Release, ...] = ((2021, 1), (2022, 2), (2023, 2), (2024, 2), (2025, 1))

# Tcl of HLS: command -> (first release, options: name -> (words, first release, ended), positional words least, most).
_ALL: Release = (2020, 1)
_NEVER: Release = (9999, 1)
Options = dict[str, tuple[int, Release, Release]]


def _options(text: str) -> Options:
    """`-name` takes no word, `-name=` takes one; `@2023.2` and `!2025.2` say from and until when."""
    found: Options = {}
    for item in text.split():
        item, _, ended = item.partition("!")
        item, _, since = item.partition("@")
        found[item.rstrip("=")] = (int(item.endswith("=")), _release(since, _ALL), _release(ended, _NEVER))
    return found


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _release(text: str, default: Release) -> Release:
    return (int(text[:4]), int(text[5:])) if text else default


_SIMULATION = "-argv= -O -clean -compiler= -ldflags= -mflags= -setup"
TCL: dict[str, tuple[Release, Options, int, int]] = {
    "open_project": (_ALL, _options("-reset -diagnostic= -upgrade"), 1, 1),
    "open_component": ((2024, 1), _options("-reset -flow_target="), 1, 1),
    "close_project": (_ALL, {}, 0, 0),
    "close_solution": (_ALL, {}, 0, 0),
    "open_solution": (_ALL, _options("-reset -flow_target="), 1, 1),
    "set_top": (_ALL, {}, 1, 1),
    "add_files": (_ALL, _options("-tb -cflags= -csimflags= -blackbox"), 1, 99),
    "set_part": (_ALL, {}, 1, 1),
    "create_clock": (_ALL, _options("-period= -name= -default"), 0, 1),
    "set_clock_uncertainty": (_ALL, {}, 1, 2),
    "config_compile": (
        _ALL,
        _options(
            "-enable_auto_rewind -ignore_long_run_time -name_max_length= -no_signed_zeros= -pipeline_loops= "
            "-pipeline_style= -pragma_strict_mode -unsafe_math_optimizations= -performance_budgeter=@2024.1"
        ),
        0, 0,
    ),
    "config_dataflow": (
        _ALL,
        _options(
            "-default_channel= -disable_fifo_sizing_opt= -fifo_depth= -override_user_fifo_depth= -scalar_fifo_depth= "
            "-start_fifo_depth= -strict_mode= -strict_stable_sync= -task_level_fifo_depth="
        ),
        0, 0,
    ),
    "config_interface": (
        _ALL,
        _options(
            "-clock_enable= -default_slave_interface= -m_axi_addr64= -m_axi_alignment_byte_size= -m_axi_latency= "
            "-m_axi_max_widen_bitwidth= -m_axi_auto_max_ports= -m_axi_conservative_mode= -register_io= "
            "-m_axi_auto_id_channel=@2023.2"
        ),
        0, 0,
    ),
    "config_rtl": (_ALL, _options("-reset= -reset_level= -kernel_profile -deadlock_detection=@2022.1"), 0, 0),
    "config_array_partition": (_ALL, _options("-complete_threshold= -throughput_driven="), 0, 0),
    "config_export": (
        _ALL,
        _options(
            "-format= -rtl= -vivado_clock= -vivado_optimization_level= -vivado_phys_opt= -vivado_report_level= "
            "-output= -ip_name=@2021.2 -version= -vendor= -library= -description= -display_name="
        ),
        0, 0,
    ),
    "csim_design": (_ALL, _options(_SIMULATION + " -profile -code_analyzer=@2023.2"), 0, 0),
    "csynth_design": (_ALL, _options("-dump_cfg -dump_post_cfg -synthesis_check"), 0, 0),
    "cosim_design": (
        _ALL,
        _options(
            "-argv= -O -clean -compiled_library_dir= -coverage -disable_deadlock_detection -disable_dependency_check "
            "-enable_dataflow_profiling -enable_fifo_sizing -ldflags= -mflags= -random_stall -rtl= -setup -tool= "
            "-trace_level= -wave_debug -user_stall=@2022.1 -enable_tasks_with_m_axi@2022.2"
        ),
        0, 0,
    ),
    "export_design": (
        _ALL,
        _options(
            "-format= -flow= -output= -rtl= -description= -display_name= -ipname= -library= -taxonomy= "
            "-vendor=!2025.2 -version=!2025.2"
        ),
        0, 0,
    ),
}  # fmt: skip

# The configuration of the unified flow; keys under [hls], and those before any section.
CONFIG_SINCE: Release = (2023, 2)
CONFIG_GLOBAL = frozenset({"part", "platform", "freqhz"})
CONFIG_HLS = _keys(
    """
    clock clock_uncertainty flow_target relative_roots syn.file syn.top syn.cflags syn.csimflags syn.file_cflags
    syn.file_csimflags syn.blackbox.file tb.file tb.cflags tb.file_cflags csim.O csim.argv csim.clean csim.ldflags
    csim.mflags csim.setup csim.profile_tripcount cosim.O cosim.argv cosim.clean cosim.rtl cosim.tool
    cosim.trace_level cosim.wave_debug cosim.setup cosim.coverage cosim.disable_deadlock_detection
    cosim.disable_dependency_check cosim.enable_dataflow_profiling cosim.enable_fifo_sizing
    cosim.enable_tasks_with_m_axi cosim.random_stall cosim.user_stall cosim.ldflags cosim.mflags
    syn.compile.pipeline_loops syn.compile.pipeline_style syn.compile.unsafe_math_optimizations
    syn.compile.no_signed_zeros syn.compile.pragma_strict_mode syn.compile.name_max_length
    syn.dataflow.default_channel syn.dataflow.fifo_depth syn.dataflow.strict_mode
    syn.dataflow.override_user_fifo_depth syn.dataflow.disable_fifo_sizing_opt syn.interface.m_axi_addr64
    syn.interface.m_axi_latency syn.interface.m_axi_max_widen_bitwidth syn.interface.m_axi_auto_max_ports
    syn.rtl.deadlock_detection syn.rtl.reset package.output.file package.output.format package.output.syn
    package.ip.vendor package.ip.library package.ip.name package.ip.version vivado.flow vivado.clock vivado.rtl
    vivado.optimization_level vivado.phys_opt vivado.report_level vivado.impl_strategy vivado.synth_strategy
    """
)

# Command lines. v++ and vitis-run take a word behind an option, or joined to it with "=".
VITIS_HLS = _options("-f= -l= -i -version -help -p= -nolog")
VITIS_RUN = _options(
    "--mode= --tcl= --csim --cosim --package --impl --config= --work_dir= --itcl= --part= --platform= --freqhz= "
    "--version --help -h --code_analyzer@2023.2"
)
_VPP = _options(
    "--platform= -f= --target= -t= --config= --output= -o= --temp_dir= --log_dir= --report_dir= --report_level= -R= "
    "--save-temps -s --debug -g --define= -D= --include= -I= --kernel_frequency= --from_step= --to_step= --list_steps "
    "--version -v --help -h --part= --freqhz=@2023.1 --optimize= -O= --jobs= -j= --mode=@2023.1 --work_dir=@2023.1 "
    "--message_rules= --input_files="
)
VPP_COMPILE = _VPP | _options(
    "--compile -c --kernel= -k= --hls.clock= --hls.pre_tcl= --hls.jobs= --hls.max_memory_ports="
)
VPP_LINK = _VPP | _options(
    "--link -l --connectivity.nk= --connectivity.sp= --connectivity.slr= --connectivity.sc= --clock.freqHz= "
    "--clock.defaultFreqHz= --remote_ip_cache= --no_ip_cache --reuse_impl= --reuse_bit= --vivado.impl.jobs= "
    "--vivado.synth.jobs= --advanced.param= --vivado.prop="
)
VPP_PACKAGE = _VPP | _options("--package -p --package.out_dir= --package.boot_mode= --package.no_image")
# The sections of a v++ configuration and their keys; keys before any section are long options.
VPP_CONFIG = {
    "connectivity": frozenset({"nk", "sp", "slr", "sc", "stream_connect", "connect"}),
    "clock": frozenset({"freqHz", "defaultFreqHz", "id", "defaultId", "tolerance"}),
    "vivado": frozenset({"prop", "param", "impl.jobs", "synth.jobs", "impl.strategies"}),
    "advanced": frozenset({"param", "prop", "misc"}),
    "hls": frozenset({"clock", "pre_tcl", "post_tcl", "jobs"}),
    "profile": frozenset({"data", "stall", "exec"}),
    "debug": frozenset({"chipscope", "protocol", "list_ports"}),
}
EMCONFIGUTIL = _options("--platform= -f= --od= --nd= --save-temps -s")
LINK_STEPS = ("create_project", "create_bd", "update_bd", "generate_target", "config_hw_runs", "synth", "impl")


def release_of(text: str) -> Release:
    """2023.2 as a pair that can be compared."""
    return _release(text, _ALL)


def takes(option: tuple[int, Release, Release], release: Release) -> bool:
    """Whether a release knows an option."""
    return option[1] <= release < option[2]
