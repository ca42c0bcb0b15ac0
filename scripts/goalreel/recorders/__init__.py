"""save_video and RecordVideo, for users who never start Snakemake."""
