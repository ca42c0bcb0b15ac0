"""Verification of a run's results: a target of its own, which brings the film up to date first."""


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
        mem_mb=needs.memory("verify"),
        runtime=needs.minutes("verify"),
    params:
        spec=specs.verify,
    shell:
        'python "$SCRIPTS/verify.py" --spec {params.spec:q}'
        " --threads {threads}"
        " {output:q} 2> {log:q}"
