"""The training of policies, and a film of their progress.

It reads nothing of a film. It leaves train/ (policies of deep Q-learning, by variant and seed),
training/ (the comparison of the variants), pixels/ (a policy trained from pixels) and
learning.mp4. `simulate` plays a policy of these if policy.name is dqn or pixels.
"""


rule training:
    """Compare the variants of deep Q-learning: train each from several seeds."""
    input:
        f"{RESULTS}/training/table.md",
        plan.trainings(DQN_POLICY),


rule dqn:
    """Train by deep Q-learning, a variant from a seed."""
    output:
        policy=DQN_POLICY,
        table=f"{RESULTS}/train/{{variant}}/{{seed}}/log.csv",
        metrics=DQN_METRICS,
    log:
        f"{RESULTS}/logs/dqn/{{variant}}.{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/dqn/{{variant}}.{{seed}}.tsv"
    conda:
        "../envs/training.yaml"
    # All cores of a local run, since its time is measured: nothing else runs beside it.
    threads: plan.cores(workflow.resource_settings.cores)
    resources:
        mem_mb=plan.memory("dqn"),
        runtime=plan.minutes("dqn"),
    params:
        spec=plan.spec("dqn"),
    shell:
        'python "$SCRIPTS/dqn.py" --spec {params.spec:q}'
        " --policy {output.policy:q}"
        " --table {output.table:q}"
        " --metrics {output.metrics:q} 2> {log:q}"


rule training_table:
    """Compare the trainings: a table, its bars, and learning curves with their bands."""
    input:
        metrics=plan.trainings(DQN_METRICS),
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
        mem_mb=plan.memory("training_table"),
        runtime=plan.minutes("training_table"),
    params:
        spec=plan.spec("training_table"),
    shell:
        'python "$SCRIPTS/training_table.py" --spec {params.spec:q}'
        " --metrics {input.metrics[0]:q}"
        " --runs {output.runs:q}"
        " --rows {output.rows:q}"
        " --table {output.table:q}"
        " --bars {output.bars:q}"
        " --curves {output.curves:q}"
        " --sums {output.sums:q} 2> {log:q}"


rule pixels:
    """Train a policy from pixels, or go on from where a training was stopped."""
    output:
        policy=PIXELS_POLICY,
        table=f"{RESULTS}/pixels/monitor.csv",
        metrics=f"{RESULTS}/pixels/metrics.json",
        plot=f"{RESULTS}/pixels/training.svg",
    log:
        f"{RESULTS}/logs/pixels.log",
    benchmark:
        f"{RESULTS}/benchmarks/pixels.tsv"
    conda:
        "../envs/training.yaml"
    # All cores of a local run: those that no collector has are the learner's.
    threads: max(plan.config["pixels"]["collectors"] + 1, plan.cores(workflow.resource_settings.cores))
    resources:
        mem_mb=plan.memory("pixels"),
        runtime=plan.minutes("pixels"),
    params:
        spec=plan.spec("pixels"),
        saved=f"{RESULTS}/pixels/checkpoint.pt",
    shell:
        'python "$SCRIPTS/pixels.py" --spec {params.spec:q}'
        " --saved {params.saved:q}"
        " --policy {output.policy:q}"
        " --table {output.table:q}"
        " --metrics {output.metrics:q}"
        " --plot {output.plot:q} 2> {log:q}"


rule learning:
    """Film the learner's first attempts at each age."""
    input:
        policy=plan.learner_policy(POLICIES),
        atlas=plan.with_atlas(rules.atlas.output),
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
        mem_mb=plan.memory("learning"),
        runtime=plan.minutes("learning"),
    params:
        spec=plan.spec("learning"),
    shell:
        'python "$SCRIPTS/learning.py" --spec {params.spec:q}'
        " --film {output.film:q}"
        " --table {output.table:q}"
        " --sums {output.sums:q}"
        " --policy {input.policy:q}"
        " --atlas {input.atlas:q} 2> {log:q}"
