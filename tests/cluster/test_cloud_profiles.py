"""The profiles: every line is an option that exists and has its reason; dry runs plan the jobs."""

import json
import re
import subprocess

import pytest
from conftest import FEW
from object_store import NO_CLUSTER, StoredProject, cluster_bin, s3_server
from project import REPOSITORY

PROFILES = sorted(path.parent.name for path in REPOSITORY.glob("profiles/*/config.yaml"))
CLOUDS = ["kubernetes", "aws-batch"]
needs_cluster = pytest.mark.skipif(cluster_bin() is None, reason=NO_CLUSTER)


def text(profile: str) -> str:
    return (REPOSITORY / "profiles" / profile / "config.yaml").read_text(encoding="utf-8")


# Snakemake's own parser reads each profile; then the plugins' own check says what is still missing.
READ = """
import contextlib, io, json, sys
from snakemake.cli import get_argument_parser
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_storage_plugins.registry import StoragePluginRegistry

profiles_read = {}
for profile in sys.argv[1:]:
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            args = get_argument_parser(profiles=[profile]).parse_args([])
        executors, providers = ExecutorPluginRegistry(), StoragePluginRegistry()
        if args.executor in executors.plugins:
            plugin = executors.get_plugin(args.executor)
            plugin.validate_settings(plugin.get_settings(args))
        if args.default_storage_provider:
            plugin = providers.get_plugin(args.default_storage_provider)
            if plugin.settings_cls:  # fs has none
                plugin.validate_settings(plugin.get_settings(args).get_settings())
        profiles_read[profile] = {"executor": args.executor, "storage": args.default_storage_provider}
    except (SystemExit, Exception) as error:
        profiles_read[profile] = {"error": output.getvalue()[-300:] + repr(error)}
print(json.dumps(profiles_read))
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> dict:
    """Return what Snakemake, with all plugins, makes of each profile, and of two wrong ones."""
    folder = tmp_path_factory.mktemp("profiles")
    wrong = {
        "unknown": text("kubernetes").replace("kubernetes-namespace:", "kubernetes-name-space:"),
        "lacking": re.sub("aws-batch-job-queue: .*", "", text("aws-batch")),
    }
    for name, content in wrong.items():
        (folder / name).mkdir()
        (folder / name / "config.yaml").write_text(content)
    folders = [REPOSITORY / "profiles" / name for name in PROFILES] + [folder / n for n in wrong]
    completed = subprocess.run(
        [cluster_bin() / "python", "-c", READ, *folders], capture_output=True, text=True, check=True
    )
    found = json.loads(completed.stdout.splitlines()[-1])
    return {path.name: found[str(path)] for path in folders}


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("profile", PROFILES)
def test_snakemake_and_its_plugins_know_every_option_of_a_profile(read, profile):
    assert "error" not in read[profile], read[profile]


@pytest.mark.slow
@needs_cluster
def test_an_option_that_does_not_exist_or_is_lacking_would_be_found(read):
    assert "kubernetes-name-space" in read["unknown"]["error"]
    assert "job-queue" in read["lacking"]["error"]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_option_of_a_profile_has_its_comment(profile):
    blocks = re.split(r"\n\s*\n", text(profile).strip())
    assert len(blocks) > 3
    for block in blocks:
        assert block.startswith("# "), f"{profile}: no comment above {block}"


@pytest.fixture(scope="module")
def planned(tmp_path_factory, user_cache) -> dict[str, str]:
    """Return what a dry run with each cloud's profile says, the bucket being empty."""
    folder = tmp_path_factory.mktemp("planned")
    (folder / "project").mkdir()
    options = ("all", "report", "clips", "--dry-run", "--verbose")
    with s3_server(folder / "server.log") as address:
        project = StoredProject(folder / "project", user_cache, address)
        return {cloud: project.run(*options, profile=cloud, config=FEW) for cloud in CLOUDS}


ONCE = ("atlas", "coded_atlas", "concat", "episodes", "plots", "grid", "swarm", "report", "clips")


@pytest.mark.slow
@needs_cluster
@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_dry_run_plans_every_job_with_its_results_in_the_bucket(planned, cloud):
    output = planned[cloud]
    table = output[output.rindex("Job stats") :]
    counts = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", table, re.M)}
    sharded = {"simulate": 2, "render": 2, "encode": 2}
    assert counts.items() >= (sharded | dict.fromkeys(ONCE, 1)).items()
    outputs = ", ".join(re.findall("^ +output: (.*)$", output, re.M)).split(", ")
    assert len(outputs) >= 14
    for path in outputs:
        assert re.fullmatch(r"s3://films/run/results/.* \(send to storage\)", path)
