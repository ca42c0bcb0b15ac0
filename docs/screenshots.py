"""Make the images of README.md and docs/ from two runs and a suite, except films.webp.

    snakemake -j 2 all grid swarm stills report
    snakemake training_progress --config policy=dqn results=results-dqn
    snakemake --configfile suite.yaml --config results=results-suite      see docs/how-to/suites.md
    python docs/screenshots.py      in an environment with envs/locks/test.txt

The report's screenshot needs Chromium and its driver (Debian: chromium chromium-driver).
"""

import itertools
import sys
import tempfile
from pathlib import Path

import av
import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).parents[1]
RESULTS, IMAGES = ROOT / "results", ROOT / "docs" / "images"
WIDTH = 600
sys.path.insert(0, str(ROOT / "scripts"))

from goalreel import open_cache, read_trajectories  # noqa: E402
from goalreel.environments.environment import make_environment  # noqa: E402
from goalreel.policies.policy import make_policy  # noqa: E402
from goalreel.provenance.spec import NO_SPEC  # noqa: E402
from goalreel.rendering.frame_recorder import filming  # noqa: E402
from goalreel.rendering.overlay import add_overlay, captions  # noqa: E402
from goalreel.simulation.reaches import simulate_reaches  # noqa: E402

ENV, CAPTION = "MountainCar-v0", "Reach {reach} · seed {seed} · {steps} steps"


def save(name: str, frame: np.ndarray | Image.Image, width: int = WIDTH) -> None:
    """Save an image with a width and a palette."""
    image = frame if isinstance(frame, Image.Image) else Image.fromarray(frame)
    size = width, round(image.height * width / image.width)
    small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.quantize(256, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)


def film_frame(name: str | Path, number: int) -> Image.Image:
    """Return a frame of one of the run's videos."""
    with av.open(str(RESULTS / name)) as container:
        (frame,) = itertools.islice(container.decode(video=0), number, number + 1)
        return frame.to_image()


def hud_frame(reach: int, before_end: int) -> np.ndarray:
    """Return a frame shortly before the end of a reach, with caption and HUD."""
    trajectories = read_trajectories(RESULTS / "trajectories" / "00000.npz")
    cache = open_cache(RESULTS / "frames" / "00000.npz")
    texts = captions(CAPTION, trajectories, ENV, "reach")
    shown = add_overlay(cache, trajectories, ENV, texts, hud=True)
    return shown[shown.episode(reach)[-1 - before_end]]


def blocks_frame(seed: int, step: int) -> np.ndarray:
    """Return a CartPole frame that outlines the blocks that an assembled film codes."""
    environment = make_environment({"env": "CartPole-v1"})
    with tempfile.TemporaryDirectory() as folder:
        with filming(Path(folder, "f.npz"), environment) as recorder:
            made = simulate_reaches(
                range(1), seed, environment, make_policy({"name": "random"}), 1, success=None,
                recorder=recorder,
            )  # fmt: skip
            recorder.write(made.digest(), NO_SPEC)
        cache = open_cache(Path(folder, "f.npz"))
        before, frame = cache[step - 1], cache[step]
    outlined = frame // 2 + 110
    for top in range(0, frame.shape[0], 16):
        for left in range(0, frame.shape[1], 16):
            place = slice(top, top + 16), slice(left, left + 16)
            if (frame[place] != before[place]).any():
                outlined[place] = (214, 69, 65)
                inner = slice(top + 1, top + 15), slice(left + 1, left + 15)
                outlined[inner] = frame[inner]
    return outlined


def save_page(name: str, page: Path, size: tuple[int, int], script: str, width: int) -> None:
    """Save a screenshot of a page's upper part, after a script that calls arguments[0]."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    with tempfile.TemporaryDirectory() as profile:
        for flag in ("headless", "no-sandbox", "disable-gpu", f"user-data-dir={profile}"):
            options.add_argument(f"--{flag}")
        options.add_argument("--window-size={},{}".format(*size))
        options.add_argument("--blink-settings=primaryHoverType=2,availableHoverTypes=2")  # a mouse
        driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        driver.get(page.as_uri())
        driver.execute_async_script(f"const done = arguments[0]; {script}")
        driver.save_screenshot(str(Path(profile, name)))
        with Image.open(Path(profile, name)) as screenshot:
            save(name, screenshot, width)
        driver.quit()


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    save("frame.png", hud_frame(reach=0, before_end=8))
    save("blocks.png", blocks_frame(seed=7, step=12))
    save("swarm.png", film_frame("swarm.mp4", 117))
    save("grid.png", film_frame("grid.mp4", 70))
    learned = RESULTS.with_name("results-dqn")
    last = pd.read_csv(learned / "training_progress.csv").iloc[-1]
    number = last.first_frame + last.steps - 12
    save("learning.png", film_frame(learned / "training_progress.mp4", number))
    save("poster.png", Image.open(RESULTS / "stills" / "poster.png"))
    save_page(
        *("report.png", RESULTS / "report" / "index.html", (1280, 860)),
        "const film = document.getElementById('film');"
        "film.addEventListener('seeked', () => setTimeout(done, 3000), {once: true});"
        "document.querySelectorAll('[role=option]')[4].click();",
        WIDTH,
    )
    suite = RESULTS.with_name("results-suite") / "index.html"
    save_page("suite.png", suite, (900, 930), "setTimeout(done, 3000);", 900)
