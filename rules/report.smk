"""The report: a page from disk that plays the film, finds every reach in it and shows the plots.

It reads the film, its tables and its views, and leaves plots/ and report/;
`snakemake --report report.zip` gathers the page, the plots and the tables.
"""


rule plots:
    """Plot the steps to the goal, the phase portrait and the reach rate."""
    input:
        episodes=rules.episodes.output.episodes,
        attempts=rules.episodes.output.attempts,
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        steps=report(
            f"{RESULTS}/plots/steps.svg",
            category="Plots",
            labels={"plot": "steps to the goal"},
            caption="../docs/report/steps.rst",
        ),
        initial_position=report(
            f"{RESULTS}/plots/initial_position.svg",
            category="Plots",
            labels={"plot": "steps by initial position"},
            caption="../docs/report/initial_position.rst",
        ),
        phase=report(
            f"{RESULTS}/plots/phase.svg",
            category="Plots",
            labels={"plot": "phase portrait"},
            caption="../docs/report/phase.rst",
        ),
        reach_rate=report(
            f"{RESULTS}/plots/reach_rate.svg",
            category="Plots",
            labels={"plot": "reach rate"},
            caption="../docs/report/reach_rate.rst",
        ),
        sums=f"{RESULTS}/plots/SHA256SUMS",
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
        " {output:q} 2> {log:q}"


rule report:
    """Make the page that plays the film, finds each reach in it, and shows the plots."""
    input:
        film=rules.concat.output,
        episodes=rules.episodes.output.episodes,
        attempts=rules.episodes.output.attempts,
        tables=rules.episodes.output.spec,
        plots=rules.plots.output[:4],  # without their checksums
        trajectories=plan.first_shard(TRAJECTORIES),
        frames=plan.first_shard(FRAMES),
        segments=plan.first_shard(SEGMENT),
        swarm=plan.with_atlas(rules.swarm.output),
        grid=rules.grid.output,
        atlas=plan.with_atlas(rules.atlas.output),
        learning=plan.if_trained(rules.learning.output.film),
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
        " {output:q} 2> {log:q}"
