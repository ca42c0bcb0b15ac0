"""A plugin for pytest that ends the tests with the table of faults: fault, tried, outcome.

python -m pytest -p fault_table tests/faults
"""

from collections import Counter


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the table from what `trials.noted` noted; a test that failed counts as such."""
    rows: dict[str, Counter] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "fault" and report.when == "call":
                    fault, outcome, tried = value
                    outcome = outcome if report.passed else "FAILED"
                    rows.setdefault(fault, Counter())[outcome] += tried
    terminalreporter.section("faults")
    terminalreporter.write_line("| Fault | Tried | What happened |")
    terminalreporter.write_line("|---|---:|---|")
    for fault, outcomes in rows.items():
        output = "; ".join(f"{outcome}: {count}" for outcome, count in outcomes.most_common())
        if len(outcomes) == 1:
            output = next(iter(outcomes))
        terminalreporter.write_line(f"| {fault} | {sum(outcomes.values())} | {output} |")
