"""How xdist shares the tests out: all of some modules go to one worker, which has what they share.

xdist 3.8's own marks for that have no effect under pytest 9.2.
"""

from xdist.scheduler import LoadScopeScheduling

# Each has a server, a project of its own, or films and frames that take seconds to make.
TOGETHER = (
    *("test_npz.py", "test_clips.py", "test_cloud_profiles.py", "test_object_storage.py"),
    "test_report.py",
)


class ByModule(LoadScopeScheduling):
    """A test by itself, or all tests of one of the modules."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::")[0]
        return module if module.endswith(TOGETHER) else nodeid
