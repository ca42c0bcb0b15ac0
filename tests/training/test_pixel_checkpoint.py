"""Checkpoints of a pixel training: it resumes from them, and from nothing else."""

import io
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores

from conftest import write_new_trailer  # noqa: E402
from pixel_batches import ACTIONS, batch, largest_difference, settings  # noqa: E402

from goalreel.errors import GoalreelError, UnusableFileError  # noqa: E402
from goalreel.training.pixels.checkpoint import (  # noqa: E402
    identity_of,
    read_checkpoint,
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
    """Make an update; return what is told of it."""
    learner.learn([learner.prepared(batch(4, number))])
    return learner.learned


def buffer() -> FrameReplay:
    """Return an empty replay buffer of two environments."""
    return FrameReplay(2, 20, (84, 84), 4, 2)


@pytest.fixture(scope="module")
def learner() -> PixelLearner:
    learner = PixelLearner(settings(), ACTIONS, 1)
    taught(learner, 0)
    return learner


@pytest.fixture(scope="module")
def replay() -> dict[str, np.ndarray]:
    """Return the arrays of a buffer that has gone round."""
    rng, filled = np.random.default_rng(1), buffer()
    shown = rng.integers(0, 256, (60, 84, 84), dtype=np.uint8)
    columns = {
        "env": np.arange(60) % 2,
        "action": np.arange(60) % 3,
        "episode_step": np.arange(60) // 2,
    }
    rest = {"reward": rng.normal(size=60), "terminated": np.zeros(60)}
    rows = {"frame": shown, **columns, **rest}
    fields = step_fields((84, 84))
    filled.append({name: column.astype(fields[name][0]) for name, column in rows.items()})
    return filled.arrays()


@pytest.fixture(scope="module")
def content(learner, replay, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("checkpoint") / "c.pt"
    write_checkpoint(path, IDENTITY, learner.state(), replay, PROGRESS)
    return path.read_bytes()


@pytest.fixture
def path(content, tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(content)
    return path


def test_a_training_resumes_as_it_was(path, learner, replay):
    other, refilled = PixelLearner(settings(), ACTIONS, 2), buffer()
    progress = resume(path, IDENTITY, other, refilled)
    assert str(progress) == str(PROGRESS)
    assert progress["best"][0]["weight"].dtype == np.float32
    for name, array in refilled.arrays().items():
        assert np.array_equal(array, replay[name]) and array.dtype == replay[name].dtype
    assert len(refilled) == 40
    again = PixelLearner(settings(), ACTIONS, 3)
    again.load(learner.state())
    for number in range(2):
        assert taught(again, number) == taught(other, number)
    assert largest_difference(again.weights(), other.weights()) == 0


def test_the_replay_is_mapped_not_copied(path):
    for array in read_checkpoint(path, IDENTITY)[1].values():
        assert isinstance(array, np.memmap) and not array.flags.writeable


@pytest.mark.parametrize(
    ("game", "changes", "actions", "said"),
    [
        ({"fire": True}, {}, 3, "game.fire is only in this training"),
        (
            {},
            {"batch": 64, "dueling": True},
            3,
            "pixels.batch is 8, not 64, pixels.dueling is False, n",
        ),
        ({}, {}, 4, "layers.actions is 3, not 4"),
    ],
)
def test_one_of_another_training_is_refused(path, game, changes, actions, said):
    with pytest.raises(GoalreelError, match=said) as error:
        read_checkpoint(path, identity_of(GAME | game, settings(**changes), actions))
    assert str(error.value).startswith(f"{path}: cannot be resumed from: it is of another training")
    assert "delete it to begin the training again" in str(error.value)
    assert path.exists() and not isinstance(error.value, UnusableFileError), "the workflow keeps it"


def test_another_device_may_go_on(path):
    faster = settings(autocast=True, compile=True, device=None)
    assert read_checkpoint(path, identity_of(GAME, faster, ACTIONS))[2]["frames"] == 12_000


def test_a_truncated_or_changed_one_is_refused(path, content):
    for place in range(0, len(content), len(content) // 6):
        changed = content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]
        for bad in (content[:place], changed):
            path.write_bytes(bad)
            with pytest.raises(GoalreelError, match="checkpoint.pt: cannot .* truncated or corru"):
                read_checkpoint(path, IDENTITY)


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        """Take the file."""
        self.path = str(path)

    def __reduce__(self):
        """Tell pickle to call `open`."""
        return open, (self.path, "w")


def test_one_that_holds_code_is_refused(path, tmp_path):
    made = tmp_path / "made"
    packed = io.BytesIO()
    torch.save(torch.load(path, weights_only=True) | {"learner": Harmful(made)}, packed)
    objects = io.BytesIO()
    np.save(objects, np.array([Harmful(made)], dtype=object), allow_pickle=True)
    pickled = path.with_name("replay.pt")
    pickled.write_bytes(path.read_bytes())
    with zipfile.ZipFile(pickled, "a") as archive:
        archive.writestr("archive/replay/other.npy", objects.getvalue())
    write_new_trailer(pickled)
    path.write_bytes(packed.getvalue())
    write_new_trailer(path)
    for bad in (path, pickled):
        with pytest.raises(GoalreelError, match=f"{bad.name}: cannot be resumed from: it is no ch"):
            read_checkpoint(bad, IDENTITY)
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists(), "it would have run"
