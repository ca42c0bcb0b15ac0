"""Any file in place of an input: a program works, or ends in a short message; it leaves no rest."""

import contextlib
import gc
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
from conftest import TARGETS, VIEWED, VIEWS
from fuzzing import bounded, examples, mutated_bytes, put
from hypothesis import given
from hypothesis import strategies as st

from goalreel import cli
from goalreel.encoding import ffmpeg
from goalreel.workflow.stages import STAGES

pytestmark = pytest.mark.slow
PROGRAMS = ["render", "coded_atlas", "encode", "concat", "episodes", "plots", *VIEWS]
LONGEST = 6000  # characters of a message


@pytest.fixture(scope="module")
def commands(viewed) -> dict[str, list[str]]:
    """Return the words of each program's command in a run of the film and all views."""
    output = viewed.run(
        "--workflow-profile",
        "none",
        "--dry-run",
        "--printshellcmds",
        "--forceall",
        *TARGETS,
        config=VIEWED,
    )
    lines = re.findall(r"^Shell command: python \S+/(\w+)\.py (.*) 2> .*$", output, re.M)
    return {program: shlex.split(words) for program, words in lines}


@pytest.mark.parametrize("program", PROGRAMS)
def test_any_file_in_place_of_an_input(viewed, commands, tmp_path, monkeypatch, capsys, program):
    fails = tmp_path / "ffmpeg"
    fails.write_text("#!/bin/sh\nexit 1\n")
    fails.chmod(0o755)
    ffmpeg.version()
    monkeypatch.setattr(ffmpeg, "executable", lambda: str(fails))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    main = cli.program(program).main
    outputs = {f"results/{name}" for name in STAGES[program].paths}
    outputs |= {name.format(shard=shard) for name in outputs for shard in ("00000", "00001")}
    words = commands[program]
    inputs = [i for i, word in enumerate(words) if word not in outputs and "results/" in word]
    inputs = [i for i in inputs if not (viewed.folder / words[i]).is_dir()]
    sound = [path for path in (viewed.folder / "results").rglob("*.*") if path.is_file()]

    @examples(sample=5, full=500)
    @given(st.data())
    def check(data):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        (tmp_path / "out").mkdir()
        argv = [str(tmp_path / "out" / Path(w).name) if w in outputs else w for w in words]
        place = data.draw(st.sampled_from(inputs)) if inputs else None
        if place is not None:
            own = viewed.folder / words[place]
            source = own if data.draw(st.booleans()) else data.draw(st.sampled_from(sound))
            content = data.draw(mutated_bytes(source.read_bytes()))
            argv[place] = str(
                put(tmp_path / f"x{own.suffix}", content, sealed=own.suffix == ".mp4")
            )
        capsys.readouterr()
        handler, status = signal.getsignal(signal.SIGTERM), 0
        try:
            with contextlib.chdir(viewed.folder), bounded():
                cli.run(lambda: main(argv))
        except SystemExit as error:
            status = error.code
        finally:
            signal.signal(signal.SIGTERM, handler)
        stderr = capsys.readouterr().err
        if status:
            message = stderr[stderr.index("error: ") :]
            assert status == 1 and 8 < len(message) < LONGEST and "Traceback" not in message, stderr
        hidden = [path for path in (tmp_path / "out").rglob(".*") if path.is_file()]
        assert not hidden, f"half a file was left: {hidden}"

    check()
