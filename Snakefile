"""goalreel: seeded episodes, played, rendered, encoded and joined into a film.

simulate {shard} -> render {shard} -> encode {shard} -> concat, and a table of episodes beside it.
What repeats is made once: the atlas has every picture drawn, the coded atlas has it coded.

Options: config.yaml. The stages: scripts/goalreel/workflow/stages.py, and scripts/STAGE.py.
"""

import os
import sys

# This file's folder; of a module that Snakemake has fetched, the installed package's.
base = os.path.abspath(workflow.current_basedir.get_path_or_uri(secret_free=True))
if not os.path.isdir(os.path.join(base, "scripts")):
    from goalreel.cli import WORKFLOW as base
sys.path.insert(0, os.path.join(base, "scripts"))

from goalreel.workflow import hooks
from goalreel.workflow.stages import STAGES, WILDCARDS

del sys.path[0]  # the programs' names must not hide modules of Snakemake's plugins


configfile: os.path.join(base, "config.yaml")


report: os.path.join(base, "docs/report/workflow.rst")


plan = hooks.plan_run(workflow, base, config)


# By which a job refuses other code or options than its run was planned with, also on a cluster.
envvars:
    "GOALREEL_PLANS",


rule all:
    """The film and its tables."""
    input:
        plan.film,


rule compare_training:
    """Compare the variants of deep Q-learning: train each from several seeds."""
    input:
        plan.comparison,


for stage in plan.stages:

    rule:
        name:
            stage
        input:
            **plan.inputs(stage),
        output:
            **plan.outputs(stage),
        log:
            plan.log(stage),
        benchmark:
            plan.log(stage, "benchmarks", "tsv")
        wildcard_constraints:
            **WILDCARDS,
        conda:
            os.path.join(base, "envs", f"{STAGES[stage].conda}.yaml")
        threads: plan.threads(stage, workflow.resource_settings.cores)
        resources:
            **plan.resources(stage),
        params:
            **plan.params(stage),
        shell:
            "{params.command} 2> {log:q}"


# What the rules are for, and what a run does at its start and its end.
hooks.register(plan, workflow)
