"""Connect goalreel to Snakemake: configuration, stages, specs, resources, hooks, summaries."""
