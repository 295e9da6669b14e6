"""From a task's body to nests: perfect loops with tests, variables in registers, operations on lanes."""
