"""Hook of hatchling: a wheel with compiled files, where ``RBAL_COMPILE=all`` asks for one (``make wheel``).

The variable may also name steps of ``rbal warmup``, with commas between them.

Such a wheel is for one version of Python and one platform, and its files for a family of CPUs (``FAMILIES`` in
``rbal/_support/cache.py``, which also says when they are used). They are made by ``rbal warmup`` in an empty cache.
This needs numba and all that rbal needs, so build without isolation. Without the variable, or for an editable install,
the hook does nothing and the wheel is for any platform.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DESCRIBE = "import json; from rbal._support.cache import described; print(json.dumps(described()))"


class CompiledFiles(BuildHookInterface):
    """Adds compiled files to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        """Compile into a folder of the build, and name the wheel by its platform."""
        asked = os.environ.get("RBAL_COMPILE")
        if not asked or version == "editable":
            return
        folder = Path(self.root, "_build", "compiled")
        compile_into(folder, Path(self.root), [] if asked == "all" else ["--only", *asked.split(",")])
        build_data["force_include"][str(folder)] = "rbal/_compiled"
        build_data["pure_python"] = False
        build_data["tag"] = tag()


def tag():
    """Tag of a wheel for this Python and this platform: object files know nothing of Python's ABI, their index does."""
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-none-{platform}"


def compile_into(folder, root, options):
    """Fill a folder with what ``rbal warmup`` compiles, by rooms, and the manifest."""
    sys.path.insert(0, str(root))
    try:
        from rbal._support import cache
    finally:
        sys.path.remove(str(root))
    family = cache.family()
    if family is None:
        raise SystemExit("RBAL_COMPILE: no family of CPUs is known for this machine; build without it")
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        environment = os.environ | family | {"NUMBA_CACHE_DIR": made, "RBAL_SHIPPED": "0", "PYTHONPATH": str(root)}
        subprocess.run([sys.executable, "-m", "rbal", "warmup", *options], cwd=root, env=environment, check=True)
        lay_out(Path(made), folder, cache.PACKAGE)
        described = subprocess.check_output([sys.executable, "-c", DESCRIBE], cwd=root, env=environment, text=True)
    (folder / cache.MANIFEST).write_text(json.dumps(json.loads(described), indent=1) + "\n", encoding="utf-8")


def lay_out(made, folder, package):
    """Move compiled files from the folders of a cache, named by places of this machine, to those of the package."""
    from numba.core.caching import _CacheLocator

    for room in {path.parent for path in package.rglob("*.py")}:
        kept = made / _CacheLocator.get_suitable_cache_subpath(str(room / "any.py"))
        if kept.is_dir():
            shutil.copytree(kept, folder / room.relative_to(package), dirs_exist_ok=True)
