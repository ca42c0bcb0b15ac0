"""Compare two runs: episodes of the same seeds side by side, and a table of differences."""

from goalreel.stage_program import stage


@stage
def compare(spec, video, table, sums):
    from goalreel.policies.policy_dependencies import check_files
    from goalreel.provenance.checksums import results_files, write_sums
    from goalreel.report.compare import film_pairs, pairs_of, read_run, write_differences

    folders = spec.config["compare"]
    check_files(spec, results_files(folders))
    runs = read_run(folders[0]), read_run(folders[1])
    pairs = pairs_of(runs)
    frames = film_pairs(video, runs, pairs, spec)
    differences = write_differences(table, pairs)
    write_sums(sums, [video, table])
    return f"{frames} frames of {differences}"
