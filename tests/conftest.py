"""Compiled kernels are cached under a key of all their sources.

Numba itself looks only at the file a function stands in, not at those it calls into.
"""

import hashlib
import os
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[1]

# Several workers share the cores: threads within one would only get in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure():
    key = hashlib.sha256(b"".join(p.read_bytes() for p in sorted((ROOT / "rbal").rglob("*.py")))).hexdigest()[:12]
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / "_build" / "numba" / key))


settings.register_profile("rbal", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("rbal")
