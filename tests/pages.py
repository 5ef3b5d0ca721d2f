"""Where the built book is, and a server and a browser to see it with."""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
WIDE, PHONE = {"width": 1300, "height": 900}, {"width": 375, "height": 800}

sys.path.append(str(ROOT / "tools"))
from browser import CHROMIUM, serve  # noqa: E402, F401

# Waits until explorers have drawn what they put off while a page loads or a slider moves.
SETTLE = """
() => new Promise((done) => {
  const busy = () => [...document.querySelectorAll("rbal-explorer")].some((e) => e.explorer?.busy);
  const wait = () => (busy() ? setTimeout(wait, 20) : done());
  requestAnimationFrame(() => requestAnimationFrame(wait));
})
"""

# Old addresses, and the pages that they lead to.
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
MOVED = {f"{old}.html": f"{new}.html" for old, new in CONFIG["sphinx"]["config"]["moved_pages"].items()}
# Pages of the built book; none where it is not built.
PAGES = sorted(
    str(path.relative_to(HTML))
    for path in HTML.rglob("*.html")
    if not {"_static", "_sources", "_images"} & set(path.relative_to(HTML).parts)
    and str(path.relative_to(HTML)) not in MOVED
)
