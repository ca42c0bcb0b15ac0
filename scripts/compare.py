"""Compare runs: the differences of each pair, and a film of the seeds that differ most."""

from goalreel.stage_program import stage


@stage
def compare(spec, video, pairs, table, sums):
    from pathlib import Path

    from goalreel.files.atomic import write_text
    from goalreel.policies.policy_dependencies import check_files
    from goalreel.provenance.checksums import results_files, write_sums
    from goalreel.report import compare as report
    from goalreel.report.compare_film import film_seeds

    # The runs of a suite are next to the folder of its comparisons.
    root = video.parents[2] if "runs_digest" in spec.config else Path()
    sides = {name: str(root / folder) for name, folder in spec.config["compare"]}
    check_files(spec, results_files(sides.values()))
    runs = [report.read_run(folder, name) for name, folder in sides.items()]
    rows, differences = report.compare_pairs(runs)
    write_text(pairs, rows.to_csv(index=False, lineterminator="\n"))
    seeds, shown = report.table_of_seeds(runs), runs[: report.MOST_SIDES]
    reasons = report.choose_seeds(rows, differences, seeds, [run.name for run in shown])
    seeds["start_s"] = film_seeds(video, shown, reasons, seeds, spec)
    write_text(table, seeds.to_csv(lineterminator="\n"))
    write_sums(sums, [video, pairs, table], spec)
    return f"{video}: {report.summary(runs, rows, seeds)}"
