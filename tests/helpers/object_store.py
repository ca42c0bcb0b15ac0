"""An S3 server on loopback, and a project with its results on it.

The server is moto. Install it and Snakemake's plugins from envs/locks/cluster-test.txt.
"""

import contextlib
import hashlib
import re
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from project import CLUSTER_BIN, Project

KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests"}
BUCKET = "films"
_WAIT = 120  # seconds for the server to start on a busy machine


@contextlib.contextmanager
def s3_server(log: Path) -> Iterator[str]:
    """Start an S3 server on a free port, yield its address, and stop it."""
    with log.open("wb") as output:
        server = subprocess.Popen(
            [CLUSTER_BIN / "moto_server", "-H", "127.0.0.1", "-p", "0"],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _address(server, log)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)


def _address(server: subprocess.Popen, log: Path) -> str:
    end = time.monotonic() + _WAIT
    while time.monotonic() < end and server.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text(encoding="utf-8"))
        if found:
            return found.group()
        time.sleep(0.1)
    raise RuntimeError(f"the S3 server did not start: {log.read_text(encoding='utf-8')}")


class StoredProject(Project):
    """A project with its results on a server, under the prefix `run`."""

    def __init__(self, folder: Path, cache: Path, address: str):
        """Copy the sources to the git repository `folder`, for the server at `address`."""
        super().__init__(folder, cache)
        self.python = CLUSTER_BIN / "python"
        self.address = address
        self._request("PUT", "")
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)

    def start(self, *options: str, profile="s3", config=None, **environment: str):
        """Start Snakemake with a profile whose bucket and server are filled in."""
        given = ["--workflow-profile", f"profiles/{profile}"]
        given += ["--default-storage-prefix", f"s3://{BUCKET}/run"]
        given += ["--storage-s3-endpoint-url", self.address, "--jobs", "2"]
        return super().start(*options, *given, config=config, **KEYS, **environment)

    def names(self) -> list[str]:
        """Return the names of all results on the server, relative to the results."""
        prefix = "run/results/"
        listing = self._request("GET", f"?list-type=2&prefix={urllib.parse.quote(prefix)}").decode()
        return [name.removeprefix(prefix) for name in re.findall("<Key>(.*?)</Key>", listing)]

    def read(self, name: str) -> bytes:
        return self._request("GET", f"/run/results/{name}")

    def write(self, name: str, content: bytes) -> None:
        self._request("PUT", f"/run/results/{name}", content)

    def delete(self, name: str) -> None:
        self._request("DELETE", f"/run/results/{name}")

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of all results, except logs and benchmarks, which hold times."""
        names = [n for n in self.names() if n.split("/")[0] not in ("logs", "benchmarks")]
        return {name: hashlib.sha256(self.read(name)).hexdigest() for name in names}

    def _request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        url = f"{self.address}/{BUCKET}{path}"
        headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/any"}
        request = urllib.request.Request(url, content, headers, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.read()
