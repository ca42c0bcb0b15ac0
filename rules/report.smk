"""The report: a page from disk that plays the film, finds every reach in it and shows the plots.

It reads the film, its tables and its views, and leaves plots/ and report/;
`snakemake --report report.zip` gathers the page, the plots and the tables.
"""


rule plots:
    """Plot the returns, the steps, what was done and, where they can be drawn, the states."""
    input:
        episodes=rules.episodes.output.episodes,
        attempts=rules.episodes.output.attempts,
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        report(
            directory(f"{RESULTS}/plots"),
            patterns=["{name}.svg"],
            category="Plots",
            labels={"plot": "{name}"},
            caption="../docs/report/plots.rst",
        ),
    log:
        f"{RESULTS}/logs/plots.log",
    benchmark:
        f"{RESULTS}/benchmarks/plots.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=plan.memory("plots"),
        runtime=plan.minutes("plots"),
    params:
        spec=plan.spec("plots"),
    shell:
        'python "$SCRIPTS/plots.py" --spec {params.spec:q}'
        " --episodes {input.episodes:q}"
        " --attempts {input.attempts:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --output {output:q} 2> {log:q}"


rule report:
    """Make the page that plays the film, finds each reach in it, and shows the plots."""
    input:
        film=rules.concat.output,
        episodes=rules.episodes.output.episodes,
        attempts=rules.episodes.output.attempts,
        tables=rules.episodes.output.spec,
        plots=rules.plots.output,
        trajectories=plan.first_shard(TRAJECTORIES),
        frames=plan.first_shard(FRAMES),
        segments=plan.first_shard(SEGMENT),
        swarm=plan.with_atlas(rules.swarm.output),
        grid=rules.grid.output,
        atlas=plan.with_atlas(rules.atlas.output),
        learning=plan.if_learner(rules.learning.output.film),
    output:
        report(
            directory(f"{RESULTS}/report"),
            htmlindex="index.html",
            category="Film",
            labels={"page": "the film and all its reaches"},
            caption="../docs/report/page.rst",
        ),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=plan.memory("report"),
        runtime=plan.minutes("report"),
    params:
        spec=plan.spec("report"),
    shell:
        'python "$SCRIPTS/report.py" --spec {params.spec:q}'
        " --film {input.film:q}"
        " --episodes {input.episodes:q}"
        " --attempts {input.attempts:q}"
        " --tables {input.tables:q}"
        " --plots {input.plots:q}"
        " --trajectories {input.trajectories:q}"
        " --frames {input.frames:q}"
        " --segments {input.segments:q}"
        " --swarm {input.swarm:q}"
        " --atlas {input.atlas:q}"
        " --learning {input.learning:q}"
        " --grid {input.grid:q}"
        " --output {output:q} 2> {log:q}"
