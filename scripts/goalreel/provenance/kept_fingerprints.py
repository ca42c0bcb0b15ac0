"""Fingerprints of the code kept in the user's cache folder, by the hash of all sources.

To find them from the syntax trees takes a fifth of a second, to read them a few milliseconds. Only
the workflow, as it is parsed, takes them from here; what they are is told in fingerprint.
"""

import json
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.provenance.fingerprint import fingerprint
from goalreel.provenance.sources import first_hash, sources_hash
from goalreel.provenance.user_cache import cache_folder

_KEPT = 20  # sets of sources whose fingerprints are kept: the edits of an afternoon


def kept_fingerprint(script: Path) -> str:
    """Return `fingerprint(script)`, from the user's cache folder if it was found before.

    Raises GoalreelError, naming the place, if a source is no Python or imports what is not there.
    """
    sources, place = first_hash(script.parent), cache_folder() / "fingerprints.json"
    kept = _read(place)
    found = kept.get(sources, {}).get(script.name)
    if found is None:
        found = _fingerprint(script)
        # An edit since the first look would file it under the wrong sources.
        if sources_hash(script.parent) == sources:
            rest = {key: kept[key] for key in list(kept)[-_KEPT + 1 :] if key != sources}
            _write(place, rest | {sources: kept.get(sources, {}) | {script.name: found}})
    return found


def _fingerprint(script: Path) -> str:
    try:
        return fingerprint(script)
    except SyntaxError as error:
        raise GoalreelError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    except (ImportError, ValueError) as error:  # ValueError: a null byte, under Python 3.11
        raise GoalreelError(f"{script} or a module that it imports: {error}") from None


def _read(place: Path) -> dict[str, dict[str, str]]:
    try:
        kept = json.loads(place.read_text(encoding="ascii"))
    except (OSError, ValueError, RecursionError):
        return {}
    sets = kept.values() if isinstance(kept, dict) else [None]
    sound = all(isinstance(found, dict) for found in sets)
    sound = sound and all(isinstance(name, str) for found in sets for name in found.values())
    return kept if sound else {}


def _write(place: Path, kept: dict[str, dict[str, str]]) -> None:
    try:
        with replacing(place) as temporary:
            temporary.write_text(json.dumps(kept), encoding="ascii")
    except OSError:  # a home that cannot be written costs time, not the film
        pass
