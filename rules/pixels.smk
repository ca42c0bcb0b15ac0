"""Learning from pixels: collectors play beside a learner, which gives them its weights.

pixels -> policy, the monitor's table, metrics and plot; nothing here takes them. What a training
that was stopped saved stands beside them, and is no output, since Snakemake would delete it.
"""


rule pixels:
    """Train a policy from pixels, or go on from where a training was stopped."""
    output:
        policy=f"{RESULTS}/pixels/policy.npz",
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
    threads: max(config["pixels"]["collectors"] + 1, needs.cores(workflow.resource_settings.cores))
    resources:
        mem_mb=needs.memory("pixels"),
        runtime=needs.minutes("pixels"),
    params:
        spec=specs.pixels,
        saved=f"{RESULTS}/pixels/checkpoint.pt",
    shell:
        'python "$SCRIPTS/pixels.py" --spec {params.spec:q}'
        " --saved {params.saved:q}"
        " {output.policy:q} {output.table:q} {output.metrics:q} {output.plot:q} 2> {log:q}"
