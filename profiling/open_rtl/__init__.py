"""The open hardware tools: Verilator for cycles, yosys for area, nextpnr for the clock; evidence `open-rtl`."""
