# Keeps each task of the kernel on the die that the design says. Read by Vivado before it places.
# FIFOs between tasks are not pinned; Vivado places them, best beside the task that reads.
proc on_die {die tasks} {
    create_pblock penstock_$die
    resize_pblock penstock_$die -add $die
    foreach task $tasks {
        set cells [get_cells -hierarchical -quiet -filter "NAME =~ */penstock_top_1/*/${task}_U0"]
        if {[llength $cells] > 0} { add_cells_to_pblock penstock_$die $cells
        } else { puts "penstock: no cell of task $task, it is left to the tool" }
    }
}
on_die SLR0 {load_x unpack_x store_0}
on_die SLR1 {fc0 convert_fc0_write convert_fc0_read fc0_relu pack_0}
