"""A pixel training resumes from its own checkpoints, and rejects others."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores

from conftest import write_new_trailer  # noqa: E402
from pixel_batches import ACTIONS, batch, largest_difference  # noqa: E402
from pixel_policies import settings  # noqa: E402

from goalreel.errors import GoalreelError, UnusableFileError  # noqa: E402
from goalreel.training.pixels.checkpoint import (  # noqa: E402
    identity_of,
    resume,
    write_checkpoint,
)
from goalreel.training.pixels.collector import step_fields  # noqa: E402
from goalreel.training.pixels.frame_replay_buffer import FrameReplay  # noqa: E402
from goalreel.training.pixels.learner import PixelLearner  # noqa: E402

GAME = {"game": "MountainCar-v0", "frame_skip": 4, "noop": 0}
IDENTITY = identity_of(GAME, settings(), ACTIONS)
PROGRESS = {
    "frames": 12_000,
    "rng": np.random.default_rng(3).bit_generator.state,
    "best": [{"weight": np.arange(6, dtype=np.float32).reshape(2, 3)}, (1, None, True, 0.5)],
}


def taught(learner: PixelLearner, number: int):
    """Make an update, and return its figures."""
    part = batch(4, number)
    learner.learn(part, learner.target_values(part))
    return learner.learned


def new(seed: int = 2) -> tuple[PixelLearner, FrameReplay]:
    """Return a learner, and an empty replay buffer of two environments."""
    return PixelLearner(settings(), ACTIONS, seed), FrameReplay(2, 40, (84, 84), 4)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a learner, a buffer that has wrapped, and their checkpoint."""
    (learner, replay), rng = new(1), np.random.default_rng(1)
    taught(learner, 0)
    for _ in range(2):
        rows = {"frame": rng.integers(0, 256, (60, 84, 84), dtype=np.uint8)}
        rows |= {"env": np.arange(60) % 2, "action": np.arange(60) % 3}
        rows |= {"reward": rng.normal(size=60), "episode_step": np.arange(60) // 2}
        rows |= {"terminated": np.zeros(60)}
        fields = step_fields()
        replay.append({name: column.astype(fields[name][0]) for name, column in rows.items()})
    path = tmp_path_factory.mktemp("checkpoint") / "c.pt"
    write_checkpoint(path, IDENTITY, learner, replay, PROGRESS)
    return learner, replay, path.read_bytes()


@pytest.fixture
def path(saved, tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(saved[-1])
    return path


def test_checkpoint_restores_learner_and_buffer(path, saved):
    (learner, replay, _), (other, refilled) = saved, new()
    progress = resume(path, IDENTITY, other, refilled)
    assert str(progress) == str(PROGRESS)
    assert progress["best"][0]["weight"].dtype == np.float32
    for name, tensor in refilled.state().items():
        assert torch.equal(tensor, replay.state()[name])
    assert len(refilled) == 80
    again = PixelLearner(settings(), ACTIONS, 3)
    again.load(copy.deepcopy(learner.state()))
    for number in range(2):
        assert taught(again, number) == taught(other, number)
    assert largest_difference(again.weights(), other.weights()) == 0


@pytest.mark.parametrize(
    ("game", "changes", "actions", "said"),
    [
        ({"fire": True}, {}, 3, "game.fire is None, not True"),
        ({}, {"batch_size": 64, "dueling": True}, 3, "batch_size is 8, not 64, pixels.dueling"),
        ({}, {}, 4, "layers.actions is 3, not 4"),
    ],
)
def test_checkpoint_of_other_training_is_rejected(path, game, changes, actions, said):
    with pytest.raises(GoalreelError, match=said) as error:
        resume(path, identity_of(GAME | game, settings(**changes), actions), *new())
    assert str(error.value).startswith(f"{path}: Cannot resume from it. Restore these settings")
    assert "delete it to start the training again" in str(error.value)
    assert path.exists() and not isinstance(error.value, UnusableFileError), "the workflow keeps it"


def test_checkpoint_resumes_on_other_device(path):
    faster = settings(autocast=True, device=None)
    assert resume(path, identity_of(GAME, faster, ACTIONS), *new())["frames"] == 12_000


def test_truncated_or_changed_checkpoint_is_rejected(path, saved):
    content = saved[-1]
    for place in range(0, len(content), len(content) // 6):
        changed = content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]
        for bad in (content[:place], changed):
            path.write_bytes(bad)
            with pytest.raises(GoalreelError, match="(?s)checkpoint.pt: Cannot .* truncated or "):
                resume(path, IDENTITY, *new())


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        """Make pickle call `open`."""
        return open, (self.path, "w")


def test_checkpoint_with_code_is_rejected(path, tmp_path):
    made = tmp_path / "made"
    torch.save(torch.load(path, weights_only=True) | {"learner": Harmful(made)}, path)
    write_new_trailer(path)
    with pytest.raises(GoalreelError, match="(?s)checkpoint.pt: Cannot resume .*Weights only"):
        resume(path, IDENTITY, *new())
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists(), "it would have run"
