"""Which die each task stands on: an exact partition, a greedy one to compare with, a picture and a table."""

from dse.partition.exact import partition
from dse.partition.graph import Connection, Placed, PlacementGraph
from dse.partition.greedy import greedy_partition
from dse.partition.of_network import placement_graph
from dse.partition.picture import partition_svg, partition_table
from dse.partition.result import Partition
from dse.partition.site import Site, site_of

__all__ = [
    "Connection",
    "Partition",
    "Placed",
    "PlacementGraph",
    "Site",
    "greedy_partition",
    "partition",
    "partition_svg",
    "partition_table",
    "placement_graph",
    "site_of",
]
