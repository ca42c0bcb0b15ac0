"""goalreel: seeded episodes, played, rendered, encoded and joined into a film.

simulate {shard} -> render {shard} -> encode {shard} -> concat, and a table of episodes beside it.
What repeats is made once: the atlas has every picture drawn, the coded atlas has it coded.

Options: config.yaml. What a stage does: scripts/STAGE.py. What makes it run again (its spec), what
it asks of a cluster and what the summary says of it: scripts/goalreel/workflow/stages.py.
"""

import os
import sys

# This file's folder; of a module that Snakemake has fetched, the installed package's.
base = os.path.abspath(workflow.current_basedir.get_path_or_uri(secret_free=True))
if not os.path.isdir(os.path.join(base, "scripts")):
    from goalreel.cli import WORKFLOW as base
sys.path.insert(0, os.path.join(base, "scripts"))

from goalreel.workflow.hooks import plan_run, print_causes, print_summary, start_run

del sys.path[0]  # the programs' names must not hide modules of Snakemake's plugins


configfile: os.path.join(base, "config.yaml")


report: os.path.join(base, "docs/report/workflow.rst")


plan = plan_run(workflow, base, config)

RESULTS = plan.config["results"]
TRAJECTORIES = f"{RESULTS}/trajectories/{{shard}}.npz"
FRAMES = f"{RESULTS}/frames/{{shard}}.npz"
SEGMENT = f"{RESULTS}/segments/{{shard}}.mp4"
DQN_POLICY = f"{RESULTS}/train/{{variant}}/{{seed}}/policy.npz"
PIXELS_POLICY = f"{RESULTS}/pixels/policy.npz"
POLICIES = {"dqn": DQN_POLICY, "pixels": PIXELS_POLICY}
DQN_METRICS = f"{RESULTS}/train/{{variant}}/{{seed}}/metrics.json"


wildcard_constraints:
    shard=r"\d{5,9}",
    variant=r"[a-z0-9_]+",
    seed=r"\d+",


# Handed on also where a cluster gives its jobs a fresh environment: a job that finds other code or
# options than its run was planned with refuses to start.
envvars:
    "GOALREEL_SOURCES",
    "GOALREEL_CONFIG",
    "GOALREEL_FOUND",


rule all:
    """The film and its tables."""
    input:
        f"{RESULTS}/film.mp4",
        f"{RESULTS}/episodes.csv",
        plan.if_reaches(f"{RESULTS}/attempts.csv"),


for stage in ("film", "training", "views", "report", "verify"):

    include: os.path.join(base, f"rules/{stage}.smk")


onstart:
    start_run(plan, workflow)


onsuccess:
    print_summary(plan, workflow)


onerror:
    print_causes(workflow)
