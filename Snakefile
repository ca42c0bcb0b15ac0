"""goalreel: seeded Mountain Car trajectories, rendered, encoded and joined into a film.

simulate {shard} -> render {shard} -> encode {shard} -> concat, and a table of episodes beside it.
What repeats is made once: the atlas has every picture drawn, the coded atlas has it coded.
Views of it (clips, grid, ...) stand in rules/views.smk. Options: config.yaml. What a stage does:
scripts/STAGE.py. What makes it run again: its `spec`. What it asks of a cluster: its `needs`.
"""

import os
import sys

BASE = workflow.basedir
SCRIPTS = os.path.join(BASE, "scripts")
sys.path.insert(0, SCRIPTS)
sys.dont_write_bytecode = True  # nothing is written beside the sources

from goalreel.workflow.hooks import Plan, check_start, checked_config, print_causes
from goalreel.workflow.hooks import print_summary, set_environment, watch_run
from goalreel.workflow.resources import Needs
from goalreel.workflow.stale_locks import release_stale_locks

sys.path.remove(SCRIPTS)  # its programs' names must not hide modules of Snakemake's plugins


configfile: os.path.join(BASE, "config.yaml")


config = checked_config(config, os.path.join(BASE, "config.schema.yaml"))
specs = Plan(config, SCRIPTS)
needs = Needs(config, specs.encoder)
set_environment(SCRIPTS, config, job=workflow.remote_exec)
if workflow.is_main_process:
    release_stale_locks()


report: "docs/report/workflow.rst"


RESULTS = config["results"]
TRAJECTORIES = f"{RESULTS}/trajectories/{{shard}}.npz"
LEARNED = f"{RESULTS}/train/policy.npz"
TRAINED = f"{RESULTS}/train/{{variant}}/{{seed}}/policy.pt"
METRICS = f"{RESULTS}/train/{{variant}}/{{seed}}/metrics.json"
FRAMES = f"{RESULTS}/frames/{{shard}}.npz"
SEGMENT = f"{RESULTS}/segments/{{shard}}.mp4"
PART = f"{RESULTS}/films/{{part}}.mp4"


wildcard_constraints:
    shard=r"\d{5,9}",
    part=r"\d{5,9}",
    variant=r"[a-z0-9_]+",
    seed=r"\d+",


rule all:
    """The film and its tables."""
    input:
        specs.films_of(f"{RESULTS}/film.mp4", f"{RESULTS}/films.csv", PART),
        f"{RESULTS}/episodes.csv",
        f"{RESULTS}/attempts.csv",


rule simulate:
    """Play a shard's episodes, bit for bit as Gymnasium would."""
    input:
        specs.learned(LEARNED, TRAINED),
    output:
        TRAJECTORIES,
    log:
        f"{RESULTS}/logs/simulate/{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/simulate/{{shard}}.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("simulate"),
        runtime=needs.minutes("simulate"),
        # Not part of the spec: it bounds the work and shapes no trajectory, so that raising it
        # makes again only the shards that had failed.
        max_attempts=config["max_attempts"],
    params:
        spec=specs.simulate,
    shell:
        'python "$SCRIPTS/simulate.py" --spec {params.spec:q}'
        " --policy {input:q}"
        " --max-attempts {resources.max_attempts}"
        " {output:q} 2> {log:q}"


rule atlas:
    """Draw every picture that the environment can show, once."""
    output:
        f"{RESULTS}/atlas.npz",
    log:
        f"{RESULTS}/logs/atlas.log",
    benchmark:
        f"{RESULTS}/benchmarks/atlas.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("atlas"),
        runtime=needs.minutes("atlas"),
    params:
        spec=specs.atlas,
    shell:
        'python "$SCRIPTS/atlas.py" --spec {params.spec:q}' " {output:q} 2> {log:q}"


rule render:
    """Find the picture of every state of a shard."""
    input:
        atlas=specs.only_mountain_car(rules.atlas.output),
        trajectories=TRAJECTORIES,
    output:
        FRAMES,
    log:
        f"{RESULTS}/logs/render/{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/render/{{shard}}.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("render"),
        runtime=needs.minutes("render"),
    params:
        spec=specs.render,
    shell:
        'python "$SCRIPTS/render.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --trajectories {input.trajectories:q}"
        " {output:q} 2> {log:q}"


rule coded_atlas:
    """Code every picture once, so that films are joined from them and not encoded."""
    input:
        rules.atlas.output,
    output:
        f"{RESULTS}/coded_atlas.npz",
    log:
        f"{RESULTS}/logs/coded_atlas.log",
    benchmark:
        f"{RESULTS}/benchmarks/coded_atlas.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("coded_atlas"),
        runtime=needs.minutes("coded_atlas"),
    params:
        spec=specs.coded_atlas,
    shell:
        'python "$SCRIPTS/coded_atlas.py" --spec {params.spec:q}'
        " --atlas {input:q}"
        " {output:q} 2> {log:q}"


rule encode:
    """Make a shard's video, captions over its frames and a keyframe at each episode's start."""
    input:
        coded_atlas=specs.assembled(rules.coded_atlas.output),
        frames=FRAMES,
        trajectories=TRAJECTORIES,
    output:
        SEGMENT,
    log:
        f"{RESULTS}/logs/encode/{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/encode/{{shard}}.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("encode"),
        runtime=needs.minutes("encode"),
    params:
        spec=specs.encode,
    shell:
        'python "$SCRIPTS/encode.py" --spec {params.spec:q}'
        " --coded-atlas {input.coded_atlas:q}"
        " --frames {input.frames:q}"
        " --trajectories {input.trajectories:q}"
        " {output:q} 2> {log:q}"


rule concat:
    """Join all segments as they are, with a chapter for each episode."""
    input:
        segments=specs.all_shards(SEGMENT),
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/film.mp4",
    log:
        f"{RESULTS}/logs/concat.log",
    benchmark:
        f"{RESULTS}/benchmarks/concat.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("concat"),
        runtime=needs.minutes("concat"),
    params:
        spec=specs.concat,
    shell:
        'python "$SCRIPTS/concat.py" --spec {params.spec:q}'
        " --segments {input.segments[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " {output:q} 2> {log:q}"


rule episodes:
    """Tell of every episode its seed, its outcome and its place in the film."""
    input:
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        episodes=report(
            f"{RESULTS}/episodes.csv",
            category="Tables",
            labels={"table": "filmed episodes"},
            caption="docs/report/episodes.rst",
        ),
        attempts=report(
            f"{RESULTS}/attempts.csv",
            category="Tables",
            labels={"table": "all attempts"},
            caption="docs/report/attempts.rst",
        ),
        spec=f"{RESULTS}/tables.json",
    log:
        f"{RESULTS}/logs/episodes.log",
    benchmark:
        f"{RESULTS}/benchmarks/episodes.tsv"
    conda:
        "envs/film.yaml"
    resources:
        mem_mb=needs.memory("episodes"),
        runtime=needs.minutes("episodes"),
    params:
        spec=specs.episodes,
    shell:
        'python "$SCRIPTS/episodes.py" --spec {params.spec:q}'
        " --trajectories {input.trajectories[0]:q}"
        " {output.episodes:q} {output.attempts:q} {output.spec:q} 2> {log:q}"


include: "rules/films.smk"
include: "rules/training.smk"
include: "rules/pixels.smk"
include: "rules/views.smk"
include: "rules/report.smk"
include: "rules/operations.smk"
include: "rules/cluster.smk"


onstart:
    check_start(workflow, SCRIPTS, config)
    watch_run(workflow)


onsuccess:
    print_summary(RESULTS, specs.shards, specs.encoder, workflow)


onerror:
    print_causes(workflow)
