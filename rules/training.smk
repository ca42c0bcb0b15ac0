"""Learning to drive: the trainers, whose policies `simulate` may play, and a film of progress.

train -> learning, and policy.npz for simulate where policy.name is sarsa; dqn {variant} {seed} ->
policy.pt for simulate where it is dqn.
"""


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
        "../envs/train.yaml"
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
        metrics=f"{RESULTS}/train/{{variant}}/{{seed}}/metrics.json",
    log:
        f"{RESULTS}/logs/dqn/{{variant}}.{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/dqn/{{variant}}.{{seed}}.tsv"
    conda:
        "../envs/dqn.yaml"
    resources:
        mem_mb=needs.memory("dqn"),
        runtime=needs.minutes("dqn"),
    params:
        spec=specs.dqn,
    shell:
        'python "$SCRIPTS/dqn.py" --spec {params.spec:q}'
        " {output.policy:q} {output.table:q} {output.metrics:q} 2> {log:q}"


rule learning:
    """Film the learner's first attempts at each age."""
    input:
        policy=LEARNED,
        atlas=rules.atlas.output,
    output:
        film=f"{RESULTS}/learning.mp4",
        table=f"{RESULTS}/learning.csv",
        sums=f"{RESULTS}/learning.sha256",
    log:
        f"{RESULTS}/logs/learning.log",
    benchmark:
        f"{RESULTS}/benchmarks/learning.tsv"
    conda:
        "../envs/learning.yaml"
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
