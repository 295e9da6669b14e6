"""Kernels by themselves, as the open tools measure them: cycles in Verilator, area by yosys."""
