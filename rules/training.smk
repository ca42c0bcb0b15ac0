"""Learning to drive: the trainers, whose policies `simulate` may play, and a film of progress.

train -> learning, and policy.npz for simulate where policy.name is sarsa; dqn {variant} {seed} ->
policy.pt for both where it is dqn, and metrics.json -> training_table.
"""


rule training:
    """Compare the variants of deep Q-learning: train each from several seeds."""
    input:
        f"{RESULTS}/training/table.md",
        specs.trainings(TRAINED),


rule train:
    """Learn to drive by SARSA, and keep the policy at each checkpoint."""
    output:
        policy=LEARNED,
        episodes=f"{RESULTS}/train/log.csv",
        sums=f"{RESULTS}/train/SHA256SUMS",
    log:
        f"{RESULTS}/logs/train.log",
    benchmark:
        f"{RESULTS}/benchmarks/train.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=needs.memory("train"),
        runtime=needs.minutes("train"),
    params:
        spec=specs.train,
    shell:
        'python "$SCRIPTS/train.py" --spec {params.spec:q}'
        " {output.policy:q} {output.episodes:q} {output.sums:q} 2> {log:q}"


rule dqn:
    """Train by deep Q-learning, a variant from a seed."""
    output:
        policy=TRAINED,
        table=f"{RESULTS}/train/{{variant}}/{{seed}}/log.csv",
        metrics=METRICS,
    log:
        f"{RESULTS}/logs/dqn/{{variant}}.{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/dqn/{{variant}}.{{seed}}.tsv"
    conda:
        "../envs/training.yaml"
    # All cores of a local run, since its time is measured: nothing else runs beside it.
    threads: needs.cores(workflow.resource_settings.cores)
    resources:
        mem_mb=needs.memory("dqn"),
        runtime=needs.minutes("dqn"),
    params:
        spec=specs.dqn,
    shell:
        'python "$SCRIPTS/dqn.py" --spec {params.spec:q}'
        " {output.policy:q} {output.table:q} {output.metrics:q} 2> {log:q}"


rule training_table:
    """Compare the trainings: a table, its bars, and learning curves with their bands."""
    input:
        metrics=specs.trainings(METRICS),
    output:
        runs=f"{RESULTS}/training/runs.csv",
        rows=report(
            f"{RESULTS}/training/table.csv",
            category="Training",
            labels={"table": "variants"},
            caption="../docs/report/training_table.rst",
        ),
        table=f"{RESULTS}/training/table.md",
        bars=report(
            f"{RESULTS}/training/bars.svg",
            category="Training",
            labels={"plot": "speed"},
            caption="../docs/report/training_bars.rst",
        ),
        curves=report(
            f"{RESULTS}/training/curves.svg",
            category="Training",
            labels={"plot": "learning curves"},
            caption="../docs/report/training_curves.rst",
        ),
        sums=f"{RESULTS}/training/SHA256SUMS",
    log:
        f"{RESULTS}/logs/training_table.log",
    benchmark:
        f"{RESULTS}/benchmarks/training_table.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=needs.memory("training_table"),
        runtime=needs.minutes("training_table"),
    params:
        spec=specs.training_table,
    shell:
        'python "$SCRIPTS/training_table.py" --spec {params.spec:q}'
        " --metrics {input.metrics[0]:q}"
        " {output:q} 2> {log:q}"


rule learning:
    """Film the learner's first attempts at each age."""
    input:
        policy=specs.learner(LEARNED, TRAINED),
        atlas=rules.atlas.output,
    output:
        film=report(
            f"{RESULTS}/learning.mp4",
            category="Training",
            labels={"film": "learning"},
            caption="../docs/report/learning.rst",
        ),
        table=f"{RESULTS}/learning.csv",
        sums=f"{RESULTS}/learning.sha256",
    log:
        f"{RESULTS}/logs/learning.log",
    benchmark:
        f"{RESULTS}/benchmarks/learning.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=needs.memory("learning"),
        runtime=needs.minutes("learning"),
    params:
        spec=specs.learning,
    shell:
        'python "$SCRIPTS/learning.py" --spec {params.spec:q}'
        " --policy {input.policy:q}"
        " --atlas {input.atlas:q}"
        " {output.film:q} {output.table:q} {output.sums:q} 2> {log:q}"
