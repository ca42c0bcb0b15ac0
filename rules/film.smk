"""The film, its rules in the order of the data.

They read the policy, if it is trained here (rules/training.smk), or a recording, or else nothing;
they leave, under the results folder, recording.npz, trajectories/, atlas.npz, frames/,
coded_atlas.npz, segments/, film.mp4 and the tables of episodes.
"""


rule recording:
    """Read the recording that is played, once, so that a shard reads no more than its episodes."""
    output:
        f"{RESULTS}/recording.npz",
    log:
        f"{RESULTS}/logs/recording.log",
    benchmark:
        f"{RESULTS}/benchmarks/recording.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("recording"),
        runtime=plan.minutes("recording"),
    params:
        spec=plan.spec("recording"),
    shell:
        'python "$SCRIPTS/recording.py" --spec {params.spec:q}' " --output {output:q} 2> {log:q}"


rule simulate:
    """Play a shard's episodes, bit for bit as Gymnasium would; draw them where Gymnasium plays."""
    input:
        plan.trained_policy(POLICIES),
        plan.if_recorded(rules.recording.output),
    output:
        trajectories=TRAJECTORIES,
        frames=plan.if_drawn(FRAMES),
    log:
        f"{RESULTS}/logs/simulate/{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/simulate/{{shard}}.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("simulate"),
        runtime=plan.minutes("simulate"),
        # Not part of the spec: it bounds the work and shapes no trajectory, so that raising it
        # makes again only the shards that had failed.
        max_attempts=plan.config["max_attempts"],
    params:
        spec=plan.spec("simulate"),
    shell:
        'python "$SCRIPTS/simulate.py" --spec {params.spec:q}'
        " --policy {input:q}"
        " --max-attempts {resources.max_attempts}"
        " --trajectories {output.trajectories:q}"
        " --frames {output.frames:q} 2> {log:q}"


rule atlas:
    """Draw every picture that the environment can show, once."""
    output:
        f"{RESULTS}/atlas.npz",
    log:
        f"{RESULTS}/logs/atlas.log",
    benchmark:
        f"{RESULTS}/benchmarks/atlas.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("atlas"),
        runtime=plan.minutes("atlas"),
    params:
        spec=plan.spec("atlas"),
    shell:
        'python "$SCRIPTS/atlas.py" --spec {params.spec:q}' " --output {output:q} 2> {log:q}"


if plan.has_atlas:

    include: "render.smk"


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
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("coded_atlas"),
        runtime=plan.minutes("coded_atlas"),
    params:
        spec=plan.spec("coded_atlas"),
    shell:
        'python "$SCRIPTS/coded_atlas.py" --spec {params.spec:q}'
        " --atlas {input:q}"
        " --output {output:q} 2> {log:q}"


rule encode:
    """Make a shard's video, captions over its frames and a keyframe at each episode's start."""
    input:
        coded_atlas=plan.if_assembled(rules.coded_atlas.output),
        frames=FRAMES,
        trajectories=TRAJECTORIES,
    output:
        SEGMENT,
    log:
        f"{RESULTS}/logs/encode/{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/encode/{{shard}}.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("encode"),
        runtime=plan.minutes("encode"),
    params:
        spec=plan.spec("encode"),
    shell:
        'python "$SCRIPTS/encode.py" --spec {params.spec:q}'
        " --coded-atlas {input.coded_atlas:q}"
        " --frames {input.frames:q}"
        " --trajectories {input.trajectories:q}"
        " --output {output:q} 2> {log:q}"


rule concat:
    """Join all segments as they are, with a chapter for each episode."""
    input:
        segments=plan.all_shards(SEGMENT),
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/film.mp4",
    log:
        f"{RESULTS}/logs/concat.log",
    benchmark:
        f"{RESULTS}/benchmarks/concat.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("concat"),
        runtime=plan.minutes("concat"),
    params:
        spec=plan.spec("concat"),
    shell:
        'python "$SCRIPTS/concat.py" --spec {params.spec:q}'
        " --segments {input.segments[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --output {output:q} 2> {log:q}"


rule episodes:
    """Tell of every episode its seed, its outcome and its place in the film."""
    input:
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        episodes=report(
            f"{RESULTS}/episodes.csv",
            category="Tables",
            labels={"table": "filmed episodes"},
            caption="../docs/report/episodes.rst",
        ),
        attempts=report(
            plan.if_reaches(f"{RESULTS}/attempts.csv"),
            category="Tables",
            labels={"table": "all attempts"},
            caption="../docs/report/attempts.rst",
        ),
        spec=f"{RESULTS}/tables.json",
    log:
        f"{RESULTS}/logs/episodes.log",
    benchmark:
        f"{RESULTS}/benchmarks/episodes.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("episodes"),
        runtime=plan.minutes("episodes"),
    params:
        spec=plan.spec("episodes"),
    shell:
        'python "$SCRIPTS/episodes.py" --spec {params.spec:q}'
        " --trajectories {input.trajectories[0]:q}"
        " --episodes {output.episodes:q}"
        " --attempts {output.attempts:q}"
        " --tables {output.spec:q} 2> {log:q}"
