"""The frames of a film whose pictures are in an atlas; Gymnasium draws others as it plays."""


rule render:
    """Find the picture of every state of a shard."""
    input:
        atlas=rules.atlas.output,
        trajectories=TRAJECTORIES,
    output:
        FRAMES,
    log:
        f"{RESULTS}/logs/render/{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/render/{{shard}}.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("render"),
        runtime=plan.minutes("render"),
    params:
        spec=plan.spec("render"),
    shell:
        'python "$SCRIPTS/render.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --trajectories {input.trajectories:q}"
        " --output {output:q} 2> {log:q}"
