"""Bodies of tasks that were written by hand, held against their contracts and the task that they stand for."""
