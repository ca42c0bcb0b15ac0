"""Films in parts, where `film.reaches_per_file` is set, and their index, films.csv.

encode -> part {part} -> films. A part is made by the program of `concat`.
"""


rule part:
    """Join the segments of a part of the reaches as they are, with a chapter for each episode."""
    input:
        segments=specs.part_shards(SEGMENT),
        trajectories=specs.part_shards(TRAJECTORIES),
    output:
        PART,
    log:
        f"{RESULTS}/logs/part/{{part}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/part/{{part}}.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=needs.memory("part"),
        runtime=needs.minutes("part"),
    params:
        spec=specs.part,
    shell:
        'python "$SCRIPTS/concat.py" --spec {params.spec:q}'
        " --segments {input.segments[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " {output:q} 2> {log:q}"


rule films:
    """Tell of each part its file, its reaches, and how long and large it is."""
    input:
        parts=specs.all_parts(PART),
    output:
        f"{RESULTS}/films.csv",
    log:
        f"{RESULTS}/logs/films.log",
    benchmark:
        f"{RESULTS}/benchmarks/films.tsv"
    conda:
        "../envs/film.yaml"
    params:
        spec=specs.films,
    shell:
        'python "$SCRIPTS/films.py" --spec {params.spec:q}'
        " --parts {input.parts[0]:q}"
        " {output:q} 2> {log:q}"
