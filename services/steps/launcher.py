"""Where a step's tools run: on the worker's machine, or as jobs of a batch system."""

from __future__ import annotations

import shlex

from penstock.db.schema.records import Step
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.tool_runner.cluster import ClusterRunner
from penstock.profiling.tool_runner.clusters import CLUSTERS
from penstock.services.settings import Settings


def runner_of(step: Step, settings: Settings) -> ToolRunner:
    """Steps that need a tool's licence go to the batch system if there is one; the rest takes minutes at most."""
    if settings.launcher == "local" or step.licence is None:
        return ToolRunner()
    return ClusterRunner(CLUSTERS[settings.launcher], tuple(shlex.split(settings.launcher_options)))
