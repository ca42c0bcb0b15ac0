"""How xdist distributes the tests: modules that share a costly fixture go to one worker.

The marks that xdist (3.8) has for that have no effect under pytest 9.2.
"""

from xdist.scheduler import LoadScopeScheduling

# Films, a browser, a server, ...
_COSTLY = (
    "assembled",
    "clips",
    "cloud_profiles",
    "object_storage",
    "report",
    "slurm",
    "suite_page",
)
_TOGETHER = tuple(f"test_{name}.py" for name in _COSTLY)


class ByModule(LoadScopeScheduling):
    """A scope: one test, or all tests of a module that shares a fixture."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::")[0]
        return module if module.endswith(_TOGETHER) else nodeid
