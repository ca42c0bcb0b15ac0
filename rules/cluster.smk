"""What a run hands to the jobs of a cluster, and which rules are no jobs of their own there."""


# Handed on also where a cluster gives its jobs a fresh environment: a job that finds other code or
# options than its run was planned with refuses to start.
envvars:
    "GOALREEL_SOURCES",
    "GOALREEL_CONFIG",


# Too small for a job of their own on a cluster; elsewhere this changes nothing.
localrules:
    all,
    training,
    training_table,
    atlas,
    coded_atlas,
    episodes,
    films,


if workflow.remote_exec and "SLURM_ARRAY_TASK_ID" not in os.environ:

    # A cluster's job has its node's cores already: its process runs the commands itself, where the
    # SLURM plugin (2.8) would start srun and one more Snakemake for each, 12 for a group of four
    # shards. Of an array's tasks the plugin must choose the command.
    localrules:
        simulate,
        render,
        encode,
        concat,
        part,
        plots,
        report,
        train,
        dqn,
        pixels,
        learning,
        clips,
        grid,
        swarm,
        phase,
        stills,
        verify,
