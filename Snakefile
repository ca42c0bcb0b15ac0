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
from goalreel.workflow.stages import STAGES

del sys.path[0]  # the programs' names must not hide modules of Snakemake's plugins


configfile: os.path.join(base, "config.yaml")


report: os.path.join(base, "docs/report/workflow.rst")


plans = hooks.plan_runs(workflow, base, config)


# The planned specs. A job, also on a cluster, rejects code or options that differ from its spec.
envvars:
    "GOALREEL_PLANS",


rule all:
    """Make the film and its tables."""
    input:
        plans.film,


rule compare_training:
    """Compare the variants of deep Q-learning: train each from several seeds."""
    input:
        plans.comparison,


for planned in plans.rules:

    rule:
        name:
            planned.name
        input:
            **planned.inputs(),
        output:
            **planned.outputs(),
        log:
            planned.log(),
        benchmark:
            planned.log("benchmarks", "tsv")
        wildcard_constraints:
            **planned.constraints,
        # All shards wait for an atlas.
        priority: int(STAGES[planned.stage].scope == "any")
        conda:
            os.path.join(base, "envs", f"{STAGES[planned.stage].conda}.yaml")
        threads: planned.threads(workflow.resource_settings.cores)
        resources:
            **planned.resources(),
        params:
            **planned.params(),
        shell:
            "{params.command} 2> {log:q}"


# In a suite, the name of a view stands for that view of each run.
for target, files in plans.targets.items():

    rule:
        name:
            target
        input:
            files,


# Docstrings of the rules, and hooks at the start and end of a run.
hooks.register(plans, workflow)
