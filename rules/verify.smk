"""Verification of the results. It reads all that is there, and leaves verify.csv."""


rule verify:
    """Check every file of the results against its checksum, its counts and its spec."""
    input:
        rules.all.input,
    output:
        report(
            f"{RESULTS}/verify.csv",
            category="Tables",
            labels={"table": "verdicts on all files"},
            caption="../docs/report/verify.rst",
        ),
    log:
        f"{RESULTS}/logs/verify.log",
    benchmark:
        f"{RESULTS}/benchmarks/verify.tsv"
    conda:
        "../envs/film.yaml"
    threads: 16  # as many as there are, if there are fewer
    resources:
        mem_mb=plan.memory("verify"),
        runtime=plan.minutes("verify"),
    params:
        spec=plan.spec("verify"),
    shell:
        'python "$SCRIPTS/verify.py" --spec {params.spec:q}'
        " --threads {threads}"
        " --output {output:q} 2> {log:q}"
