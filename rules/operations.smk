"""Operations on the results of a run: verify them, free the frame caches, remove all of them.

Each is a target of its own. `verify` brings the film up to date first, as every target does.
"""

KEPT_LOGS = ".snakemake/log"  # outside of what is removed


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


rule free_frames:
    """Remove the frame caches; nothing is made again for it."""
    log:
        f"{KEPT_LOGS}/free_frames.log",
    conda:
        "../envs/film.yaml"
    params:
        results=RESULTS,
    shell:
        'python "$SCRIPTS/free_frames.py" {params.results:q} 2> {log:q}'


rule clean:
    """Remove what goalreel made in the results, and nothing else."""
    log:
        f"{KEPT_LOGS}/clean.log",
    conda:
        "../envs/film.yaml"
    params:
        results=RESULTS,
    shell:
        'python "$SCRIPTS/clean.py" {params.results:q} 2> {log:q}'
