"""A suite is many runs in one DAG, each as it is alone."""

import os

import pytest
import yaml
from conftest import hashes
from message_form import check_form

from goalreel.errors import GoalreelError
from goalreel.provenance.spec import parse_spec
from goalreel.verification.run import verify_suite
from goalreel.workflow.config import load_config
from goalreel.workflow.rules import Plans
from goalreel.workflow.suite import expand

OPTIONS = {"episodes": 2, "max_episode_steps": 8}
SUITE = "{env: [CartPole-v1], policy: [random, act.py]}"
ONE_MORE = "{env: [CartPole-v1], policy: [random, act.py, greedy.py]}"
ACT = "def act(observations):\n    return (observations[:, 0] > 0).astype(int)\n"
STAGES = ("simulate", "encode", "concat", "episodes", "grid", "stills", "plots", "report")
COLUMN = {f"run_{stage}": 1 for stage in STAGES} | {"suite_compare": 1, "suite_index": 1}


@pytest.fixture(scope="session")
def suite(once):
    """Return a project with the films of two policies."""

    def make(fresh):
        for name in ("act.py", "greedy.py"):
            (fresh.folder / name).write_text(ACT)
        return fresh.run("-j", "2", config=OPTIONS | {"suite": SUITE})

    return once("suite", make)


def test_suite_runs_equal_single_runs(suite, tmp_path):
    project = suite.copied(tmp_path / "project")
    project.run(config=OPTIONS | {"env": "CartPole-v1", "policy": "act.py", "results": "alone"})
    in_suite = hashes(project.folder / "results" / "CartPole-v1-act")
    assert hashes(project.folder / "alone").items() <= in_suite.items()


def test_suite_in_a_folder_named_compare_has_its_comparison(project):
    options = {"suite": "{policy: [random, pump]}", "results": "my-compare", "episodes": 2}
    assert project.jobs(config=options)["suite_compare"] == 1


def test_verify_finds_damage_of_the_page_and_of_comparisons(suite, monkeypatch):
    monkeypatch.chdir(suite.folder)
    results = suite.folder / "results"

    def found(**options):
        runs = expand(OPTIONS | {"suite": yaml.safe_load(SUITE)} | options)
        configs = {name: load_config(run.options) for name, run in runs.items()}
        suite_plan = Plans(configs, runs, suite.folder / "scripts", 0).suite
        verdict = verify_suite(results, parse_spec(suite_plan.spec("verify", {})).config["lists"])
        return {path for path, file in verdict.files.items() if not file.is_ok}

    own = [path for path in results.iterdir() if path.suffix in (".html", ".csv", ".json")]
    own += [results / "suite.sha256", *results.glob("compare/*/*")]
    assert len(own) == 8, own
    assert not found()
    for path in own:
        content, times = path.read_bytes(), path.stat()
        middle = len(content) // 2
        for damaged in (content[:middle], content.replace(content[middle : middle + 1], b"?")):
            path.write_bytes(damaged)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert path in found(), path
        path.write_bytes(content)
    others = {path.name for path in found(seed=7)}
    assert others == {"suite.sha256", "SHA256SUMS"}, "of a suite of other episodes"


@pytest.mark.slow
def test_suite_run_continues_as_a_single_run(suite, tmp_path):
    project = suite.copied(tmp_path / "project")
    config_file = "results/CartPole-v1-random/config.yaml"
    assert project.jobs("--configfile", config_file) == {}
    assert project.jobs("clips", "--configfile", config_file) == {"clips": 1}
    assert project.jobs("clips", config=OPTIONS | {"suite": SUITE}) == {"clips": 1, "run_clips": 2}


def test_new_or_edited_policy_reruns_only_its_column(suite, tmp_path):
    project = suite.copied(tmp_path / "project")
    assert project.jobs(config=OPTIONS | {"suite": SUITE}) == {}
    assert project.jobs(config=OPTIONS | {"suite": ONE_MORE}) == COLUMN
    project.edit("act.py", "> 0", "> 0.01")
    assert project.jobs(config=OPTIONS | {"suite": SUITE}) == COLUMN


@pytest.mark.slow
def test_failed_run_leaves_the_others(suite, tmp_path):
    project = suite.copied(tmp_path / "project")
    late = ACT.replace("    return", "    os.environ['FAIL'] and 1 / 0\n    return")
    (project.folder / "late.py").write_text(f"import os\n{late}")
    suite_of_three = "{env: [CartPole-v1], policy: [late.py, greedy.py]}"
    project.run("--dry-run", config=OPTIONS | {"suite": suite_of_three}, FAIL="")
    output = project.fail("--keep-going", config=OPTIONS | {"suite": suite_of_three}, FAIL="1")
    assert "CartPole-v1-late" in output and "division by zero" in output
    results = project.folder / "results"
    assert (results / "CartPole-v1-greedy/film.mp4").is_file()
    assert not (results / "CartPole-v1-late/film.mp4").exists()
    assert f"Which runs failed, and why: {results.name}/index.html" in output
    page = (results / "index.html").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in page and "CartPole-v1-greedy/report/index.html" in page
    project.run("-j", "2", config=OPTIONS | {"suite": suite_of_three}, FAIL="")
    assert "ZeroDivisionError" not in (results / "index.html").read_text(encoding="utf-8")


def test_checkpoints_are_runs_in_the_order_of_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for steps in (20_000, 5_000, 100_000):
        (tmp_path / f"rl_model_{steps}_steps.zip").touch()
    suite = {"checkpoint": "rl_model_*_steps.zip"}
    runs = expand({"suite": suite, "policy": {"name": "sb3"}, "results": "r"})
    assert list(runs) == ["005000", "020000", "100000"]
    first = runs["005000"]
    assert first.options["policy"] == {"name": "sb3", "file": "rl_model_5000_steps.zip"}
    assert first.options["results"] == "r/005000"
    assert [run.column for run in runs.values()] == ["5000", "20000", "100000"]
    assert all(run.is_checkpoint and run.row == "MountainCar-v0" for run in runs.values())
    assert [*expand({"suite": {"checkpoint": f"{tmp_path}/*_steps.zip"}})] == list(runs)
    (tmp_path / "again_5000_steps.zip").touch()
    with pytest.raises(GoalreelError, match="again_5000.* and rl_model_5000.* have the same steps"):
        expand({"suite": {"checkpoint": "*_steps.zip"}})


def test_option_of_the_policy_is_an_axis():
    runs = expand({"suite": {"policy.checkpoint": ["best", "last"]}, "policy": "trained"})
    policies = [run.options["policy"] for run in runs.values()]
    assert policies == [{"name": "trained", "checkpoint": name} for name in ("best", "last")]
    assert [run.column for run in runs.values()] == ["best", "last"]
    # Also of a file, and before the axis of the policy.
    axes = {"policy.function": ["act", "other"], "policy": ["agent.py"]}
    policies = [run.options["policy"] for run in expand({"suite": axes}).values()]
    assert policies == [{"file": "agent.py", "function": name} for name in ("act", "other")]


def test_value_that_is_no_section_is_kept_for_its_message():
    runs = expand({"suite": {"runs": {"a": {"film": 3, "film.fps": 4}}}})
    with pytest.raises(GoalreelError, match="film: '3' is not allowed"):
        load_config(runs["a"].options)


def test_rl_zoo_folder_gives_a_run_for_each_model(tmp_path):
    for model in ("ppo/CartPole-v1_1", "dqn/ALE-Pong-v5_3"):
        env = model.partition("/")[2].rpartition("_")[0]
        (tmp_path / model / env).mkdir(parents=True)
        (tmp_path / model / env / "args.yml").touch()
    runs = expand({"suite": {"rl_zoo": str(tmp_path)}})
    places = {name: (run.row, run.column, run.training_seed) for name, run in runs.items()}
    assert places == {
        "CartPole-v1-ppo-1": ("CartPole-v1", "ppo", "1"),
        "ALE-Pong-v5-dqn-3": ("ALE/Pong-v5", "dqn", "3"),
    }
    assert runs["ALE-Pong-v5-dqn-3"].options["env"] == "ALE/Pong-v5"


def test_axes_fill_the_names_of_the_others():
    policy = {"best": {"name": "sb3", "file": "logs/{env}/best.zip"}, "random": "random"}
    runs = expand({"suite": {"env": ["ALE/Pong-v5", "CartPole-v1"], "policy": policy}})
    assert list(runs) == [
        *("ALE-Pong-v5-best", "ALE-Pong-v5-random", "CartPole-v1-best", "CartPole-v1-random")
    ]
    assert runs["ALE-Pong-v5-best"].options["policy"]["file"] == "logs/ALE-Pong-v5/best.zip"
    assert runs["ALE-Pong-v5-best"].options["env"] == "ALE/Pong-v5"


def test_axes_become_rows_and_columns_of_the_page():
    def places(**suite):
        runs = expand({"suite": suite}).values()
        return [(run.row, run.column, run.training_seed) for run in runs]

    envs, policies = ["CartPole-v1", "Acrobot-v1"], ["random", "act.py"]
    assert places(policy=policies) == [
        ("MountainCar-v0", "random", None),
        ("MountainCar-v0", "act", None),
    ]
    assert places(env=envs, max_episode_steps=[9])[1] == ("Acrobot-v1, 9", "policy", None)
    ppo = {"ppo": "logs/{training_seed}/{env}.zip"}
    assert places(env=envs[:1], training_seed=[1, 2], policy=ppo) == [
        ("CartPole-v1", "ppo", "1"),
        ("CartPole-v1", "ppo", "2"),
    ]
    # A policy without a training is no training.
    assert places(env=envs[:1], training_seed=[1, 2], policy=["random", "trained"]) == [
        ("CartPole-v1", "random", None),
        ("CartPole-v1", "trained", "1"),
        ("CartPole-v1", "trained", "2"),
    ]
    listed = {"a": {"env": envs[0], "policy": "random"}, "b": {"env": envs[0], "policy": "random"}}
    assert places(runs=listed) == [("CartPole-v1", "a", None), ("CartPole-v1", "b", None)]


@pytest.mark.parametrize(
    ("suite", "problem"),
    [
        ([1], "is not a mapping"),
        ({"env": []}, "no values"),
        ({"env": "CartPole-v1"}, "is not a list"),
        ({"polcy": ["random"]}, "Did you mean 'policy'?"),
        ({"policy": ["a/act.py", "b/act.py"]}, "the same name"),
        ({"runs": {"x": {}, "x ": {}}}, "the name 'x'"),
        ({"runs": {"x": 3}}, "is not a mapping"),
        ({"runs": {}}, "no runs"),
        ({"runs": {"x": {"results": "elsewhere"}}}, "cannot differ"),
        ({"results": ["a", "b"]}, "cannot differ"),
        ({"suite": [1]}, "cannot differ"),
        ({"env": ["CartPole-v1"], "training_seed": [1, 2]}, "No value has {training_seed}"),
        ({"policy": ["random"], "train.seed": [1, 2]}, "No value has {training_seed}"),
        ({"checkpoint": "nowhere/*_steps.zip"}, "No file matches"),
        ({"checkpoint": "logs/**model_*.zip"}, "suite.checkpoint: .*Correct 'logs/"),
        ({"rl_zoo": "nowhere"}, "has no model"),
    ],
)
def test_wrong_suites_are_answered_in_one_message(suite, problem):
    with pytest.raises(GoalreelError, match=problem) as error:
        expand({"suite": suite})
    check_form(str(error.value))
