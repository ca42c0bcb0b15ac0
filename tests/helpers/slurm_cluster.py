"""A SLURM cluster of three nodes: munged, slurmctld and a slurmd for each, on loopback.

Its key, socket, configuration, state and logs are in one temporary folder. It uses free ports, and
reads no file of the system's SLURM. It polls memory every second, because cgroups may be missing.
"""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_SECONDS = 300  # after which a test gives up

_NODES = ("node1", "node2", "node3")
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=8000"
_CONFIGURATION = """
ClusterName=goalreel
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdTimeout=10
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=2
"""


class Cluster:
    """A running SLURM cluster, with the `environment` of its commands and of Snakemake.

    `nodes` has the daemon of each node by its name.
    """

    def __init__(self, limits: str = "MinJobAge=3600"):
        """Start the daemons and wait until the nodes take jobs, or skip if SLURM is not installed.

        `limits` are lines of the configuration.
        """
        missing = [name for name in _PROGRAMS if not shutil.which(name, path=_PATH)]
        if missing:
            pytest.skip(f"SLURM is not installed (slurm-wlm and munge): no {', '.join(missing)}")
        self.folder = Path(tempfile.mkdtemp(prefix="goalreel-slurm-"))  # sockets need short paths
        self._daemons: list[subprocess.Popen] = []
        for name in ("state", "munge", "bin"):
            (self.folder / name).mkdir(mode=0o700)
        configuration = self.folder / "slurm.conf"
        self.environment = {
            "SLURM_CONF": str(configuration),
            # The plugin's job step removes SLURM_CONF before it calls srun.
            "PATH": os.pathsep.join([str(self.folder / "bin"), _PATH]),
        }
        wrapper = self.folder / "bin" / "srun"
        real = shutil.which("srun", path=_PATH)
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {real} "$@"\n')
        wrapper.chmod(0o755)
        with contextlib.ExitStack() as stack:
            free = [stack.enter_context(socket.socket()) for _ in range(1 + len(_NODES))]
            for each in free:
                each.bind(("127.0.0.1", 0))
            controller, *daemons = (each.getsockname()[1] for each in free)
        host, user = socket.gethostname().partition(".")[0], getpass.getuser()
        nodes = zip(_NODES, daemons, strict=True)
        lines = [_NODE.format(name=name, host=host, port=port) for name, port in nodes]
        names = {"host": host, "user": user, "folder": self.folder, "nodes": "\n".join(lines)}
        names |= {"controller": controller}
        configuration.write_text(limits + _CONFIGURATION.format(**names))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        munge, configuration = self.folder / "munge", self.environment["SLURM_CONF"]
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        places = {"key-file": "key", "socket": "socket", "pid-file": "pid"}
        places |= {"log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={munge / name}" for option, name in places.items()]
        self._daemon("munged", "--foreground", "--force", *options)
        self.wait(lambda: (munge / "socket").exists(), "munged has a socket")
        self._daemon("slurmctld", "-D", "-f", configuration)
        self.nodes = {name: self.start_node(name) for name in _NODES}
        idle = f"{len(_NODES)} idle\n"
        self.wait(lambda: self.command("sinfo", "-h", "-o", "%D %T") == idle, "the nodes are idle")

    def start_node(self, name: str) -> subprocess.Popen:
        """Start the daemon of a node."""
        return self._daemon("slurmd", "-D", "-N", name, "-f", self.environment["SLURM_CONF"])

    def kill_node(self, name: str) -> None:
        """Kill a node's daemon and all of its jobs, as a power cut would."""
        words = ("squeue", "-h", f"--nodelist={name}", "--states=running", "-o", "%i")
        jobs = self.command(*words).split()
        self.nodes[name].kill()
        for process in psutil.process_iter(["environ", "cmdline"]):
            info, title = process.info, " ".join(process.info["cmdline"] or ())
            is_step = any(title.startswith(f"slurmstepd: [{job}.") for job in jobs)
            if is_step or (info["environ"] or {}).get("SLURM_JOB_ID") in jobs:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def _daemon(self, name: str, *options: str) -> subprocess.Popen:
        command = [shutil.which(name, path=_PATH), *options]
        with (self.folder / f"{name}.out").open("a") as output:
            started = subprocess.Popen(
                command,
                env=os.environ | self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._daemons.append(started)
        return started

    def command(self, *words: str) -> str:
        """Run one of SLURM's commands and return what it prints, "" if it fails."""
        environment = os.environ | self.environment
        settings = {"env": environment, "text": True, "timeout": _SECONDS}
        answer = subprocess.run(words, capture_output=True, **settings)
        return answer.stdout if answer.returncode == 0 else ""

    def jobs(self, state: str = "all", but: Iterable[str] = ()) -> list[str]:
        """Return the ids of the jobs in a state, the oldest first, except those in `but`."""
        output = self.command("squeue", "-h", f"--states={state}", "-o", "%i")
        return sorted(set(output.split()).difference(but), key=int)

    def facts(self, job: str) -> dict[str, str]:
        """Return the fields that SLURM shows of a job."""
        words = self.command("scontrol", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait(self, done, what: str, process: subprocess.Popen | None = None):
        """Return the first true result of `done`, or fail after a time limit."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            if found := done():
                return found
            if process is not None and process.poll() is not None:
                pytest.fail(f"snakemake ended before {what}:\n{process.communicate()[0]}")
            time.sleep(0.2)
        logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
        pytest.fail(f"never: {what}\n{logs}")

    def stop(self) -> None:
        """Cancel all jobs, end the daemons and delete the folder."""
        self.command("scancel", f"--user={getpass.getuser()}")
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
