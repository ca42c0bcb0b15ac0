"""Views of a finished run, each a target of its own: snakemake -j 16 clips

They read trajectories and frame caches; nothing of the film depends on them.
"""


rule clips:
    """Film chosen episodes and snippets as videos of their own."""
    input:
        atlas=rules.atlas.output,
        frames=expand(FRAMES, shard=specs.shards),
        trajectories=expand(TRAJECTORIES, shard=specs.shards),
    output:
        directory(f"{RESULTS}/clips"),
    log:
        f"{RESULTS}/logs/clips.log",
    benchmark:
        f"{RESULTS}/benchmarks/clips.tsv"
    conda:
        "../envs/clips.yaml"
    threads: 4
    params:
        spec=specs.clips,
    shell:
        'python "$SCRIPTS/clips.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --threads {threads}"
        " {output:q} 2> {log:q}"
