"""goalreel: simulate, render and encode seeded episodes, and join them into a film.

simulate {shard} -> render {shard} -> encode {shard} -> concat, and the tables of episodes.
The atlas holds every frame of an environment drawn once, and the coded atlas holds it coded once.

config.yaml holds the options. scripts/goalreel/workflow/stages.py lists the rules, and
scripts/RULE.py is the program of each.
"""

import os
import sys

# The folder of this file or, in a module that Snakemake has fetched, of the installed package.
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


# The planned specs. A job, also on a cluster, rejects code or options that differ from its spec.
envvars:
    "GOALREEL_PLANS",


rule all:
    """Make the film and its tables."""
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


# Docstrings of the rules, and hooks at the start and end of a run.
hooks.register(plan, workflow)
