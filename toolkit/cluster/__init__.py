"""Statistics of published trajectories on many processes or machines, equal to those of one."""

from toolkit.cluster.placement import Cluster, PartsDone

__all__ = ["Cluster", "PartsDone"]
