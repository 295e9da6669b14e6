"""Which die each task stands on: an exact partition, a greedy one to compare with, a picture and a table."""

from penstock.dse.partition.exact import partition
from penstock.dse.partition.graph import PlacedThing, PlacementGraph, Wires
from penstock.dse.partition.greedy import greedy_partition
from penstock.dse.partition.of_network import placement_graph
from penstock.dse.partition.picture import partition_svg, partition_table
from penstock.dse.partition.result import Partition
from penstock.dse.partition.site import Site, site_of

__all__ = [
    "Wires",
    "Partition",
    "PlacedThing",
    "PlacementGraph",
    "Site",
    "greedy_partition",
    "partition",
    "partition_svg",
    "partition_table",
    "placement_graph",
    "site_of",
]
