"""When pages run and with what: the longest first, no more workers than cores, and how long and how large each was.

What the last build measured is kept in ``_build/pages.json``, and used before ``tools/pages.json``, which is in the
repository for builds without an earlier one (``python tools/schedule.py`` writes it from the last build). As a plugin
of pytest, it does the same for chapters under nbval.
"""

import json
import os
import sys
import threading
from pathlib import Path

import joblib
import psutil

ROOT = Path(__file__).resolve().parent.parent
LAST, STORED = ROOT / "_build" / "pages.json", ROOT / "tools" / "pages.json"
UNKNOWN = 60.0  # seconds of a page that nobody has timed: what a chapter may take
COLUMNS = 84  # characters of a line that the column of a page holds
EVERY = 1.0  # seconds between two looks at the memory: one takes milliseconds of the system, which pages then lack


# ---- what is known of pages


def known():
    """Map name to seconds and megabytes of each page, from the last run of each."""
    found = {}
    for path in (STORED, LAST):
        if path.exists():
            found |= json.loads(path.read_text(encoding="utf-8"))
    return found


def remember(name, seconds, megabytes):
    """Keep what a page took, and with how many workers; two processes may do so at a time."""
    from rbal._support.files import locked, replacing

    with locked(LAST):
        found = json.loads(LAST.read_text(encoding="utf-8")) if LAST.exists() else {}
        found[name] = {"seconds": round(seconds, 1), "megabytes": round(megabytes), "workers": joblib.cpu_count()}
        with replacing(LAST) as file:
            file.write(json.dumps(found, indent=1, sort_keys=True).encode())


def longest_first(names):
    """The names of pages, in the order in which they are to be started."""
    seconds = {name: page["seconds"] for name, page in known().items()}
    return sorted(names, key=lambda name: -seconds.get(name, UNKNOWN))


# ---- workers and memory


def share(jobs):
    """Environment of a page that runs beside others, ``jobs`` in all: its part of the cores, and the width of a page.

    joblib never starts more workers than it counts cores, and counts these; numba has so many threads. What a command
    prints is folded to the columns.
    """
    cores = str(max(1, joblib.cpu_count() // jobs))
    parts = {name: cores for name in ("LOKY_MAX_CPU_COUNT", "NUMBA_NUM_THREADS") if name not in os.environ}
    return parts | {"COLUMNS": str(COLUMNS)}


class Memory:
    """Largest memory that all processes below this one took together, in MB, from start to stop.

    What processes share is counted once (proportional set sizes, where the system has them). A kernel that took more
    between two looks than at any is counted by its own record, and so is one that has no other process beside it.
    """

    def __init__(self):
        self.megabytes = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self):
        """Begin to watch."""
        self._thread.start()
        return self

    def stop(self):
        """Make an end of it, and return the megabytes."""
        self._over.set()
        self._thread.join()
        return self.megabytes

    def _watch(self):
        while not self._over.wait(EVERY):
            below = psutil.Process().children(recursive=True)
            most = [peak(process) for process in below]
            # the record of a single process is never below what it has now
            together = sum(map(size, below)) if len(below) > 1 or None in most else 0.0
            self.megabytes = max(self.megabytes, together, *(record or 0.0 for record in most), 0.0)


def peak(process):
    """The most memory that a process ever had, in MB; None if the system does not tell."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    return next((int(line.split()[1]) / 2**10 for line in status.splitlines() if line.startswith("VmHWM")), None)


def size(process):
    """Memory of a process now, in MB, its part of what it shares; 0 if it has ended."""
    try:
        found = process.memory_full_info()
    except psutil.Error:
        return 0.0
    return getattr(found, "pss", found.rss) / 2**20


# ---- plugin of pytest


def pytest_configure(config):
    """Let the kernels of a worker have its share of the cores."""
    jobs = os.environ.get("PYTEST_XDIST_WORKER_COUNT") or config.getoption("numprocesses", None) or 1
    os.environ.update(share(int(jobs)))


def pytest_collection_modifyitems(items):
    """Sort chapters by their length; cells of one stay together and in order."""
    stems = {item.path.stem for item in items}
    order = {name: k for k, name in enumerate(longest_first(f"notebooks/{stem}.md" for stem in sorted(stems)))}
    items.sort(key=lambda item: order[f"notebooks/{item.path.stem}.md"])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    STORED.write_text(json.dumps(known(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
