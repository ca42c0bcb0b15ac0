"""What Snakemake calls: configuration, stages, specs, resources, hooks and summaries."""
