"""Hold the files that are about to be committed to three rules, mending what can be mended.

A text file has no trailing spaces and ends in one newline; no file is over 5 MB. Exits 1 if it changed or refused one.
"""

import re
import sys
from pathlib import Path

MAX_BYTES = 5_000_000


def check(path):
    """Mend the text of one file; say what was wrong with it, or return None."""
    content = path.read_bytes()
    if len(content) > MAX_BYTES:
        return f"over {MAX_BYTES} bytes ({len(content)})"
    if b"\0" in content or not content:
        return None
    mended = re.sub(rb"[ \t]+(?=\r?\n|\Z)", b"", content).rstrip(b"\r\n") + b"\n"
    if mended == content:
        return None
    path.write_bytes(mended)
    return "trailing space or end of file mended"


def main(names):
    """Check each named file and report."""
    problems = [(name, problem) for name in names if (problem := check(Path(name)))]
    for name, problem in problems:
        print(f"{name}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
