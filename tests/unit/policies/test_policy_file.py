"""Policy files of DQN: they come back as they were written, and nothing in them can run."""

import io
import pickle
import zipfile

import numpy as np
import pytest

from goalreel.errors import GoalreelError, Unusable
from goalreel.files.seal import LENGTH, write_seal
from goalreel.policies.network_file import Checkpoints, read_checkpoints, write_checkpoints
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import parse_spec

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
SPEC = '{"config":{},"shard":{},"stage":"dqn"}'


def weights(seed: int, hidden=(8, 8)) -> dict[str, np.ndarray]:
    rng, sizes = np.random.default_rng(seed), (2, *hidden, 3)
    found = {}
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        found[f"{2 * number}.weight"] = rng.normal(size=(outputs, inputs)).astype(np.float32)
        found[f"{2 * number}.bias"] = rng.normal(size=outputs).astype(np.float32)
    return found


@pytest.fixture
def kept() -> Checkpoints:
    return Checkpoints((8, 8), (5000, 10000, 15000), (-150.0, -101.0, -120.0), tuple(
        weights(seed) for seed in range(3)), parse_spec(SPEC))  # fmt: skip


def test_checkpoints_come_back(kept, tmp_path):
    for name in ("a.pt", "b.pt"):
        write_checkpoints(tmp_path / name, kept)
    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.pt").read_bytes()
    read = read_checkpoints(tmp_path / "a.pt")
    assert (read.hidden, read.ages, read.means, read.spec) == (
        *(kept.hidden, kept.ages, kept.means, kept.spec),
    )
    for ours, theirs in zip(read.weights, kept.weights, strict=True):
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert [read.choose(name) for name in ("best", "last", 5000)] == [1, 2, 0]
    with pytest.raises(
        GoalreelError, match="policy.checkpoint: 7 is not a checkpoint .* 5000, 10000, 15000"
    ):
        read.choose(7)
    assert read_spec(tmp_path / "a.pt").stage == "dqn"


def test_users_read_it_with_pytorch_alone(kept, tmp_path):
    write_checkpoints(tmp_path / "p.pt", kept)
    content = torch.load(tmp_path / "p.pt", weights_only=True)
    model = torch.nn.Sequential(
        *[torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.ReLU()],
        torch.nn.Linear(8, 3),
    )
    model.load_state_dict(content["weights"][1])
    seen = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)
    chosen = model(torch.from_numpy(seen)).argmax(dim=1).tolist()
    assert kept.network(1).act(seen).tolist() == chosen


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        """Take the file."""
        self.path = str(path)

    def __reduce__(self):
        """Tell pickle to call `open`."""
        return open, (self.path, "w")


def saved(path, content) -> None:
    """Write an archive of PyTorch's as goalreel does, with a spec and a seal."""
    packed = io.BytesIO()
    torch.save(content, packed)
    path.write_bytes(packed.getvalue())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/spec.json", SPEC)
        archive.comment = bytes(LENGTH)
    write_seal(path)


def test_a_file_that_holds_code_is_refused(tmp_path):
    path, made = tmp_path / "p.pt", tmp_path / "made"
    saved(path, {"kind": Harmful(made)})
    with pytest.raises(Unusable, match="not a policy file of weights alone"):
        read_checkpoints(path)
    assert not made.exists()
    path.write_bytes(pickle.dumps(Harmful(made)) + bytes(200))
    write_seal(path)
    with pytest.raises(Unusable):
        read_checkpoints(path)
    assert not made.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"env": "CartPole-v1"}, "CartPole-v1"),
        ({"kind": "other"}, "other"),
        ({"weights": None}, "not a policy file"),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(kept, tmp_path, change, said):
    path = tmp_path / "p.pt"
    write_checkpoints(path, kept)
    saved(path, torch.load(path, weights_only=True) | change)
    with pytest.raises(Unusable, match=said) as error:
        read_checkpoints(path)
    assert error.value.path == path


def test_a_truncated_or_changed_file_is_refused(kept, tmp_path):
    path = tmp_path / "p.pt"
    write_checkpoints(path, kept)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        for content in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :],
        ):
            path.write_bytes(content)
            with pytest.raises(Unusable, match="truncated or corrupt"):
                read_checkpoints(path)
    with pytest.raises(GoalreelError, match="no such file"):
        read_checkpoints(tmp_path / "missing.pt")
