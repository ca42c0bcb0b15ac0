"""Views of a finished run, each a target of its own: snakemake clips

They read trajectories, frame caches and the atlas, and leave clips/, grid.mp4, swarm.mp4, phase.mp4,
stills/, card/ and lerobot/; compare/ is of two finished runs. Nothing of the film depends on them.
"""


rule clips:
    """Film chosen episodes and snippets as videos of their own."""
    input:
        atlas=plan.with_atlas(rules.atlas.output),
        policy=plan.trained_policy(POLICIES),
        frames=plan.all_shards(FRAMES),
        trajectories=plan.all_shards(TRAJECTORIES),
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
        mem_mb=plan.memory("clips"),
        runtime=plan.minutes("clips"),
    params:
        spec=plan.spec("clips"),
    shell:
        'python "$SCRIPTS/clips.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --policy {input.policy:q}"
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --threads {threads}"
        " --output {output:q} 2> {log:q}"


rule grid:
    """Play all episodes side by side, page after page."""
    input:
        frames=plan.all_shards(FRAMES),
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/grid.mp4",
    log:
        f"{RESULTS}/logs/grid.log",
    benchmark:
        f"{RESULTS}/benchmarks/grid.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("grid"),
        runtime=plan.minutes("grid"),
    params:
        spec=plan.spec("grid"),
    shell:
        'python "$SCRIPTS/grid.py" --spec {params.spec:q}'
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --output {output:q} 2> {log:q}"


rule swarm:
    """Put all reaches on one track at the same time."""
    input:
        atlas=rules.atlas.output,
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/swarm.mp4",
    log:
        f"{RESULTS}/logs/swarm.log",
    benchmark:
        f"{RESULTS}/benchmarks/swarm.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("swarm"),
        runtime=plan.minutes("swarm"),
    params:
        spec=plan.spec("swarm"),
    shell:
        'python "$SCRIPTS/swarm.py" --spec {params.spec:q}'
        " --atlas {input.atlas:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --output {output:q} 2> {log:q}"


rule phase:
    """Draw all trajectories in the phase plane as they grow."""
    input:
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        f"{RESULTS}/phase.mp4",
    log:
        f"{RESULTS}/logs/phase.log",
    benchmark:
        f"{RESULTS}/benchmarks/phase.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=plan.memory("phase"),
        runtime=plan.minutes("phase"),
    params:
        spec=plan.spec("phase"),
    shell:
        'python "$SCRIPTS/phase.py" --spec {params.spec:q}'
        " --trajectories {input.trajectories[0]:q}"
        " --output {output:q} 2> {log:q}"


rule stills:
    """Draw a poster, a contact sheet and a short animated preview."""
    input:
        frames=plan.all_shards(FRAMES),
        trajectories=plan.all_shards(TRAJECTORIES),
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
        mem_mb=plan.memory("stills"),
        runtime=plan.minutes("stills"),
    params:
        spec=plan.spec("stills"),
    shell:
        'python "$SCRIPTS/stills.py" --spec {params.spec:q}'
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --poster {output.poster:q}"
        " --contact-sheet {output.contact_sheet:q}"
        " --preview {output.preview:q}"
        " --sums {output.sums:q} 2> {log:q}"


rule card:
    """Make a folder that can be pushed to Hugging Face's hub as a model card."""
    input:
        frames=plan.all_shards(FRAMES),
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        readme=f"{RESULTS}/card/README.md",
        replay=f"{RESULTS}/card/replay.mp4",
        results=f"{RESULTS}/card/results.json",
        sums=f"{RESULTS}/card/SHA256SUMS",
    log:
        f"{RESULTS}/logs/card.log",
    benchmark:
        f"{RESULTS}/benchmarks/card.tsv"
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=plan.memory("card"),
        runtime=plan.minutes("card"),
    params:
        spec=plan.spec("card"),
    shell:
        'python "$SCRIPTS/card.py" --spec {params.spec:q}'
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --readme {output.readme:q}"
        " --replay {output.replay:q}"
        " --results {output.results:q}"
        " --sums {output.sums:q} 2> {log:q}"


rule lerobot:
    """Write all episodes as a LeRobot data set."""
    input:
        frames=plan.all_shards(FRAMES),
        trajectories=plan.all_shards(TRAJECTORIES),
    output:
        directory(f"{RESULTS}/lerobot"),
    log:
        f"{RESULTS}/logs/lerobot.log",
    benchmark:
        f"{RESULTS}/benchmarks/lerobot.tsv"
    conda:
        "../envs/report.yaml"
    threads: 4
    resources:
        mem_mb=plan.memory("lerobot"),
        runtime=plan.minutes("lerobot"),
    params:
        spec=plan.spec("lerobot"),
    shell:
        'python "$SCRIPTS/lerobot.py" --spec {params.spec:q}'
        " --frames {input.frames[0]:q}"
        " --trajectories {input.trajectories[0]:q}"
        " --threads {threads}"
        " --output {output:q} 2> {log:q}"


rule compare:
    """Film the same seeds of two finished runs side by side, and list their differences."""
    output:
        video=f"{RESULTS}/compare/compare.mp4",
        table=f"{RESULTS}/compare/compare.csv",
        sums=f"{RESULTS}/compare/SHA256SUMS",
    log:
        f"{RESULTS}/logs/compare.log",
    benchmark:
        f"{RESULTS}/benchmarks/compare.tsv"
    conda:
        "../envs/film.yaml"
    resources:
        mem_mb=plan.memory("compare"),
        runtime=plan.minutes("compare"),
    params:
        # The two runs are in it, and no input: rules of this run must not make them again.
        spec=plan.spec("compare"),
    shell:
        'python "$SCRIPTS/compare.py" --spec {params.spec:q}'
        " --video {output.video:q}"
        " --table {output.table:q}"
        " --sums {output.sums:q} 2> {log:q}"
