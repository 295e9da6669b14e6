"""Which die each task stands on: an exact partition, a greedy one to compare with, a picture and a table."""

from penstock.dse.partition.exact import partition, partition_with_memories
from penstock.dse.partition.graph import LargeMemories, PlacedThing, PlacementGraph, Wires
from penstock.dse.partition.greedy import greedy_partition
from penstock.dse.partition.moving import Division, divide
from penstock.dse.partition.of_network import large_memories, placement_graph
from penstock.dse.partition.picture import partition_svg, partition_table
from penstock.dse.partition.result import Partition
from penstock.dse.partition.site import Site, site_of

__all__ = [
    "Wires",
    "Division",
    "LargeMemories",
    "Partition",
    "PlacedThing",
    "PlacementGraph",
    "Site",
    "divide",
    "greedy_partition",
    "large_memories",
    "partition",
    "partition_svg",
    "partition_table",
    "partition_with_memories",
    "placement_graph",
    "site_of",
]
