"""goalreel: simulate, render and encode seeded episodes, and join them into a film.

simulate {shard} -> render {shard} -> encode {shard} -> concat, and the tables of episodes.
The atlas holds every frame of an environment drawn once, and the coded atlas holds it coded once.

Options: config.yaml. Rules: scripts/goalreel/workflow/stages.py. Their programs: scripts/RULE.py.
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
        priority: int(STAGES[planned.stage].scope == "any")  # all shards wait for an atlas
        conda:
            os.path.join(base, "envs", f"{STAGES[planned.stage].conda}.yaml")
        threads: planned.threads
        resources:
            **planned.resources(),
        params:
            **planned.params(),
        shell:
            "{params.command} 2> {log:q}"


for target, files in plans.targets.items():

    rule:
        name:
            target
        input:
            files,


hooks.register(plans, workflow)
