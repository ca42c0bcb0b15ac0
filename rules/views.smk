"""Views of a finished run, each a target of its own: snakemake -j 16 clips

They read trajectories and frame caches; nothing of the film depends on them.
"""


rule clips:
    """Film chosen episodes and snippets as videos of their own."""
    input:
        atlas=specs.only_mountain_car(rules.atlas.output),
        policy=specs.learned(LEARNED, TRAINED),
        frames=specs.all_shards(FRAMES),
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        directory(f"{RESULTS}/clips"),
    log:
        f"{RESULTS}/logs/clips.log",
    benchmark:
        f"{RESULTS}/benchmarks/clips.tsv"
    conda:
        "../envs/film.yaml"
    threads: 4
    resources:
        mem_mb=needs.memory("clips"),
        runtime=needs.minutes("clips"),
    params:
        spec=specs.clips,
    shell:
        'python "$SCRIPTS/clips.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --policy {input.policy:q}"
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --threads {threads}"
        " {output:q} 2> {log:q}"


rule grid:
    """Play all episodes side by side, page after page."""
    input:
        frames=specs.all_shards(FRAMES),
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/grid.mp4",
    log:
        f"{RESULTS}/logs/grid.log",
    benchmark:
        f"{RESULTS}/benchmarks/grid.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=needs.memory("grid"),
        runtime=needs.minutes("grid"),
    params:
        spec=specs.grid,
    shell:
        'python "$SCRIPTS/grid.py" --spec {params.spec:q}'
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " {output:q} 2> {log:q}"


rule swarm:
    """Put all reaches on one track at the same time."""
    input:
        atlas=rules.atlas.output,
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/swarm.mp4",
    log:
        f"{RESULTS}/logs/swarm.log",
    benchmark:
        f"{RESULTS}/benchmarks/swarm.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=needs.memory("swarm"),
        runtime=needs.minutes("swarm"),
    params:
        spec=specs.swarm,
    shell:
        'python "$SCRIPTS/swarm.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --trajectories {input.trajectories[0]:q}"
        " {output:q} 2> {log:q}"


rule phase:
    """Draw all trajectories in the phase plane as they grow."""
    input:
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/phase.mp4",
    log:
        f"{RESULTS}/logs/phase.log",
    benchmark:
        f"{RESULTS}/benchmarks/phase.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=needs.memory("phase"),
        runtime=needs.minutes("phase"),
    params:
        spec=specs.phase,
    shell:
        'python "$SCRIPTS/phase.py" --spec {params.spec:q}'
        " --trajectories {input.trajectories[0]:q}"
        " {output:q} 2> {log:q}"


rule stills:
    """Draw a poster, a contact sheet and a short animated preview."""
    input:
        frames=specs.all_shards(FRAMES),
        trajectories=specs.all_shards(TRAJECTORIES),
    output:
        poster=f"{RESULTS}/stills/poster.png",
        contact_sheet=f"{RESULTS}/stills/contact_sheet.png",
        preview=f"{RESULTS}/stills/preview.webp",
        sums=f"{RESULTS}/stills/SHA256SUMS",
    log:
        f"{RESULTS}/logs/stills.log",
    benchmark:
        f"{RESULTS}/benchmarks/stills.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=needs.memory("stills"),
        runtime=needs.minutes("stills"),
    params:
        spec=specs.stills,
    shell:
        'python "$SCRIPTS/stills.py" --spec {params.spec:q}'
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " {output.poster:q} {output.contact_sheet:q} {output.preview:q}"
        " {output.sums:q} 2> {log:q}"
