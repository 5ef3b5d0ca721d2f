"""Keys of the two caches: what a compiled kernel depends on, and what a page's output depends on.

``python tools/digest.py`` prints the first, for the Makefile, before there is a .venv: the standard library must do.
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def kernels(root=ROOT):
    """Key of the compiled kernels, as in tests/conftest.py: numba only watches the file a function stands in."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted((root / "rbal").rglob("*.py")))).hexdigest()[
        :12
    ]


def outputs(root=ROOT):
    """Key of all that a page's output depends on besides its own cells: package, stored results and locked versions."""
    digest = hashlib.sha256()
    folders = root / "rbal", root / "book" / "_data"
    files = [path for folder in folders for path in folder.rglob("*")]
    files = [path for path in files if path.is_file() and "__pycache__" not in path.parts]
    for path in [root / "requirements.lock", *sorted(files)]:
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    print(kernels())
