"""The profiles hold only existing options, each with a reason, and dry runs plan the jobs."""

import json
import re
import subprocess

import pytest
import yaml
from conftest import FEW
from object_store import StoredProject, s3_server
from project import CLUSTER_BIN, REPOSITORY, job_counts, needs_cluster

from goalreel.workflow.stages import STAGES

PROFILES = sorted(path.parent.name for path in REPOSITORY.glob("profiles/*/config.yaml"))
CLOUDS = ["kubernetes", "aws-batch"]


def text(profile: str) -> str:
    return (REPOSITORY / "profiles" / profile / "config.yaml").read_text(encoding="utf-8")


# Snakemake's parser reads each profile, and the plugins report missing options.
READ = """
import contextlib, io, json, sys
from snakemake.cli import get_argument_parser
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry
from snakemake_interface_storage_plugins.registry import StoragePluginRegistry

errors = {}
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
        errors[profile] = ""
    except (SystemExit, Exception) as error:
        errors[profile] = output.getvalue()[-300:] + repr(error)
print(json.dumps(errors))
"""


@pytest.mark.slow
@needs_cluster
def test_profiles_hold_only_options_that_snakemake_knows(tmp_path):
    unknown = text("kubernetes").replace("kubernetes-namespace:", "kubernetes-name-space:")
    (tmp_path / "config.yaml").write_text(unknown)
    folders = [str(REPOSITORY / "profiles" / name) for name in PROFILES]
    command = [CLUSTER_BIN / "python", "-c", READ, *folders, tmp_path]
    read = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    errors = json.loads(read.splitlines()[-1])
    assert "kubernetes-name-space" in errors.pop(str(tmp_path))
    assert not any(errors.values()), errors


@pytest.mark.parametrize("profile", PROFILES)
def test_profile_options_have_comments(profile):
    blocks = re.split(r"\n\s*\n", text(profile).strip())
    assert len(blocks) > 3
    for block in blocks:
        assert block.startswith("# "), f"{profile}: no comment above {block}"


def test_aws_profile_requests_memory_for_jobs_of_every_stage():
    """The plugin would take the smallest memory, or fail, for what the rules request."""
    requests = yaml.safe_load(text("aws-batch"))["set-resources"]
    sent = {name for name, stage in STAGES.items() if not stage.local} - {"verify"}
    in_suites = {f"run_{name}" for name in sent - {"compare"}} | {"run1_simulate", "suite_compare"}
    assert set(requests) == sent | in_suites


@pytest.fixture(scope="module")
def planned(tmp_path_factory, user_cache) -> dict[str, str]:
    """Return the output of a dry run with each cloud profile and an empty bucket."""
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
def test_cloud_dry_run_plans_all_jobs_with_results_in_bucket(planned, cloud):
    output = planned[cloud]
    sharded = {"simulate": 2, "render": 2, "encode": 2}
    assert job_counts(output).items() >= (sharded | dict.fromkeys(ONCE, 1)).items()
    outputs = ", ".join(re.findall("^ +output: (.*)$", output, re.M)).split(", ")
    assert len(outputs) >= 14
    for path in outputs:
        assert re.fullmatch(r"s3://films/run/results/.* \(send to storage\)", path)
