"""Frames per second of Super Mario Bros: goalreel's environment and gym-super-mario-bros on nes-py.

    python -m benchmarks.film.mario --peer PYTHON        a minute

PYTHON is an interpreter with gym-super-mario-bros 7.4.0, nes-py 8.2.1, gym 0.26.2 and NumPy 1. Both
play the actions of the tests that reach the flag of 1-1, with a copy of each screen and its info.
"""

import importlib
import json
import statistics
import sys
import time
import warnings
from functools import partial

from benchmarks import harness

NES_PY, OURS = "gym-super-mario-bros on nes-py", "goalreel on stable-retro"
GAMES = harness.ROOT / "tests" / "unit" / "environments" / "super_mario_bros.json"
PACKAGES = ("stable-retro", "gym-super-mario-bros", "gymnasium", "numpy")


def make(name: str):
    """Return the environment of a row, reset."""
    if name == OURS:
        from goalreel.environments.mario import MarioEnv

        env = MarioEnv("SuperMarioBros-1-1-v0", repeat_action_probability=0.0)
    else:
        warnings.simplefilter("ignore")
        game = importlib.import_module("gym_super_mario_bros")
        buttons = importlib.import_module("gym_super_mario_bros.actions").SIMPLE_MOVEMENT
        joypad = importlib.import_module("nes_py.wrappers").JoypadSpace
        env = joypad(game.SuperMarioBrosEnv(target=(1, 1)), buttons)
    env.reset()
    return env


def row(name: str) -> dict:
    """Return the frames per CPU second of a game, and its figures."""
    game = json.loads(GAMES.read_text(encoding="utf-8"))[0]
    runs = (map(int, run.split("x")) for run in game["actions"].split())
    # nes-py shows each frame one step later.
    actions = [action for action, count in runs for _ in range(count)] + [0] * (name == NES_PY)
    env, total, copy = make(name), 0.0, None
    start = time.process_time()
    for action in actions:
        screen, reward, *_, info = env.step(action)
        copy, total = screen.copy(), total + float(reward)
    seconds = time.process_time() - start
    facts = [total, bool(info["flag_get"]), int(info["x_pos"]), int(info["time"]), copy.ndim]
    return {"rate": len(actions) / seconds, "facts": facts}


def main() -> None:
    """Measure both rows in turns, and write the table."""
    options = harness.parser(__doc__, runs=5)
    options.add_argument("--peer", default=sys.executable, help="interpreter with nes-py")
    options.add_argument("--row", help="measure one row in this process")
    options = options.parse_args()
    if options.row:
        print(json.dumps(row(options.row)))
        return
    measure = partial(harness.row_process, "benchmarks.film.mario")
    works = {NES_PY: partial(measure, NES_PY, options.peer), OURS: partial(measure, OURS)}
    found = harness.take_turns(works, options.runs)
    facts = {json.dumps(result["facts"]) for results in found.values() for result in results}
    if len(facts) > 1:
        raise harness.MismatchError(f"the games differ: {facts}")
    rates = {name: statistics.median(r["rate"] for r in found[name]) for name in works}
    rows = [[n, harness.digits(r), harness.digits(r / rates[NES_PY])] for n, r in rates.items()]
    notes = [
        f"{harness.medians(options.runs)}. Each row plays 1,515 frames of 1-1 to the flag, and "
        "copies each screen. The sums of rewards, the positions and the clocks are the same.",
        "gym-super-mario-bros 7.4.0 with nes-py 8.2.1 and NumPy 1.26 in an interpreter of its own.",
    ]
    header = ["Super Mario Bros", "frames per CPU second", "ratio"]
    harness.write_table(options.output / "mario.md", header, rows, notes, packages=PACKAGES)


if __name__ == "__main__":
    main()
