"""How long a frame of an explorer takes in Chromium while a slider is dragged: median, 95 % and largest, by the clock.

    python tools/frames.py [explorer [slider [frames]]]

A frame is all that the page does between the move of the slider and the picture: solving, drawing and layout. Beside it
stands the CPU time of the page's thread, which other processes of the machine do not lengthen. The first frames, in
which the browser compiles the script, are driven and not counted. No throttling.
"""

import sys
from pathlib import Path

import numpy as np
from browser import ARGUMENTS, CHROMIUM, serve

HTML = Path(__file__).resolve().parent.parent / "_build" / "html"
PAGE = "book/explorers.html"
WARM = 60
DRAG = """
async ([id, frames]) => {
  const slider = document.getElementById(id);
  const [low, high] = [Number(slider.min), Number(slider.max)];
  const times = [];
  for (let k = 0; k < frames; k++) {
    const place = 0.5 - 0.35 * Math.cos((2 * Math.PI * k) / 97); // to and fro
    times.push(await new Promise((done) => {
      let began = 0;
      requestAnimationFrame(() => (began = performance.now()));
      slider.value = low + (high - low) * place;
      slider.dispatchEvent(new Event("input", { bubbles: true })); // the explorer asks for the same frame
      requestAnimationFrame(() => {
        document.body.getBoundingClientRect(); // layout
        done(performance.now() - began);
      });
    }));
  }
  return times;
}
"""


def cpu(session):
    """Milliseconds of CPU that the page's thread has used."""
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    return 1e3 * metrics["TaskDuration"]


def measure(explorer, slider, frames):
    """Milliseconds of each frame by the clock, and the mean CPU time of one."""
    from playwright.sync_api import sync_playwright

    with serve(HTML) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        tab = browser.new_page(viewport={"width": 1300, "height": 900})
        tab.goto(address + PAGE)
        place = f"x-{explorer}-{slider}"
        tab.wait_for_selector(f"#{place}")
        tab.locator(f"#{place}").scroll_into_view_if_needed()
        tab.evaluate(DRAG, [place, WARM])
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = cpu(session)
        times = np.array(tab.evaluate(DRAG, [place, frames]))
        spent = (cpu(session) - before) / frames
        browser.close()
    return times, spent


def main(explorer="tradeoff", slider="kappa", frames="250"):
    """Measure, and print one line."""
    if CHROMIUM is None or not (HTML / PAGE).exists():
        sys.exit("frames.py needs Chromium and a built book: make book")
    times, spent = measure(explorer, slider, int(frames))
    low, high = np.percentile(times, [50, 95])
    late = np.mean(times > 1e3 / 30)
    print(f"{explorer}, {slider}, {len(times)} frames: median {low:.1f} ms, 95 % {high:.1f} ms, ", end="")
    print(f"largest {times.max():.1f} ms; {100 * late:.0f} % above 33 ms; CPU of the page {spent:.1f} ms a frame")


if __name__ == "__main__":
    main(*sys.argv[1:])
