"""Fuzz the public surface: every nasty value in every argument once, then random draws, until a time is over.

``python tools/fuzz.py --seconds 3600`` prints what was tried in each area, writes findings with a reproducing line each
to ``_build/fuzz/findings.md``, and ends with 1 if there are any. ``python tools/fuzz.py "rbal.solve(ISING, 1, 0)"``
tries one call, in the words of that file.
"""

import argparse
import contextlib
import importlib
import itertools
import json
import random
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "tests" / "fuzz"
OUT = ROOT / "_build" / "fuzz"
AREAS = sorted(
    path.stem.removeprefix("test_fuzz_") for path in FUZZ.glob("test_fuzz_*.py") if "\nCASES = " in path.read_text()
)
EACH = "each "  # in front of an area: every argument with every nasty value, one after the other, not draws
SLICE = 60.0  # seconds of one process: what leaks or crashes stays within it
WHOLE = 1800.0  # seconds from which on there is time for every value in every argument, beside random draws
STUCK = 120.0  # seconds without a sign, after which a process is ended
COUNTED = ("calls", "answer", "error", "known", "findings")


def work(area, seed, seconds, log):
    """Draw from the cases of an area until the time is over; each call is on disk before it is made."""
    from nasty import each, run, tally

    cases = importlib.import_module(f"test_fuzz_{area.removeprefix(EACH)}").CASES
    dice, end = random.Random(seed), time.monotonic() + seconds

    def write(**record):
        log.write(json.dumps(record) + "\n")
        log.flush()

    def keep(counts, findings):
        write(counts=counts)
        for found in findings.values():
            write(key=found.key, message=found.message, call=found.call)

    if area.startswith(EACH):
        for case in cases:
            counts, findings = Counter(), {}
            for call in each(case):
                write(call=repr(call))
                tally(call, counts, findings)
            keep(counts, findings)
        return
    while time.monotonic() < end:
        for case in dice.sample(cases, len(cases)):
            if time.monotonic() > end:
                break
            counts, findings = run(
                case, 20, derandomize=False, start=dice.randrange(2**32), until=lambda: time.monotonic() > end,
                on=lambda call: write(call=repr(call)),
            )  # fmt: skip
            keep(counts, findings)


def slice_of(area, seed, seconds):
    """Counts and findings of one process; one that dies or is stuck is a finding, too."""
    OUT.mkdir(parents=True, exist_ok=True)
    log = OUT / f"{area.replace(' ', '-')}.jsonl"
    log.unlink(missing_ok=True)
    order = [
        sys.executable,
        __file__,
        "--work",
        area,
        "--seed",
        str(seed),
        "--seconds",
        str(seconds),
        "--log",
        str(log),
    ]
    with log.with_suffix(".err").open("w") as errors:
        child = subprocess.Popen(order, cwd=OUT, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        while child.poll() is None:
            time.sleep(0.2)
            if log.exists() and time.time() - log.stat().st_mtime > STUCK:
                child.kill()
    counts, findings, last, loose = Counter(), {}, "nothing", 0
    for line in log.read_text().splitlines() if log.exists() else ():
        record = json.loads(line)
        if "counts" in record:
            counts.update(record["counts"])
            loose = 0
        elif "key" in record:
            findings.setdefault(record["key"], (record["message"], record["call"]))
        else:
            last, loose = record["call"], loose + 1
    if child.returncode:
        tail = log.with_suffix(".err").read_text(errors="replace").strip().splitlines()[-1:]
        findings[f"the process ended with {child.returncode} in {last.split('(')[0]}"] = (" ".join(tail), last)
        counts.update(calls=loose, findings=1)
    return counts, findings


def report(counts, findings):
    """Print the counts of each area, and write the findings down."""
    print(f"{'area':<12}" + "".join(f"{name:>10}" for name in COUNTED))
    for area in (*counts, "total"):
        row = sum(counts.values(), Counter()) if area == "total" else counts[area]
        print(f"{area:<12}" + "".join(f"{row[name]:>10}" for name in COUNTED))
    write_down(findings)
    print(f"{row['calls']} inputs tried, {len(findings)} findings, by exception and place: {OUT / 'findings.md'}")


def write_down(findings):
    """Write the findings to their file, each with a line that repeats it."""
    lines = [f"# {len(findings)} findings, {time.strftime('%Y-%m-%d %H:%M')}", ""]
    for key, (message, call) in sorted(findings.items()):
        lines.append(
            f"- **{key}**: {' '.join(message.split())}\n  `python tools/fuzz.py {json.dumps(call, ensure_ascii=False)}`"
        )
    (OUT / "findings.md").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="backslashreplace")


def once(text):
    """Make one call, with its traceback."""
    from objects import GLOBALS, Objects

    for area in AREAS:  # each adds what its calls are made of
        importlib.import_module(f"test_fuzz_{area}")
    try:
        print(repr(eval(text, GLOBALS, Objects())))
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", nargs="?", help="one call to try")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=AREAS)
    parser.add_argument("--seed", type=int, help="of the draws (of the clock)")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path[:0] = [str(FUZZ), str(ROOT)]
    if given.call:
        return once(given.call)
    if given.work:
        with open(given.log, "a", encoding="utf-8") as log:
            return work(given.work, given.seed, given.seconds, log)
    dice, end = random.Random(given.seed), time.monotonic() + given.seconds
    orderly = [EACH + area for area in given.areas] if given.seconds >= WHOLE else []
    counts, findings = {area: Counter() for area in (*orderly, *given.areas)}, {}
    span = min(SLICE, given.seconds / len(given.areas))
    with contextlib.suppress(KeyboardInterrupt):  # what was found until then is told
        for k, area in enumerate(itertools.chain(orderly, itertools.cycle(given.areas))):
            if k >= len(counts) and time.monotonic() > end - span / 2:  # each has its turn
                break
            counted, found = slice_of(area, dice.randrange(2**32), span)
            counts[area].update(counted)
            print(f"{area}: {counted['calls']} calls", flush=True) if area.startswith(EACH) else None
            for key in found.keys() - findings.keys():
                findings[key] = found[key]
                print(f"{area}: {key}", flush=True)
            write_down(findings)  # what is found stays found, however this process ends
    report(counts, findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
