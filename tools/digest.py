"""Key of the cache of pages: all that a page's output depends on."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILED = (".pyc", ".nbi", ".nbc")


def outputs(root=ROOT):
    """Key of all a page's output depends on besides its own cells: the package and its results, the locked versions."""
    digest = hashlib.sha256()
    sources = (path for package in ("rbal", "rbal_book") for path in (root / package).rglob("*"))
    files = [path for path in sources if path.is_file() and path.suffix not in COMPILED]
    for path in [root / "requirements.lock", *sorted(files)]:
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
