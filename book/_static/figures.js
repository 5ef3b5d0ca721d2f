// Figures that open large by a tap, a click or a key; formulas, tables and stills that show where they go on.
// Nothing is fetched but the figure itself.

function enlarge(holder) {
  const shown = [...holder.querySelectorAll("img")].find((image) => image.offsetParent !== null);
  if (!shown) return;
  const dialog = document.createElement("dialog");
  dialog.className = "rbal-large";
  dialog.setAttribute("aria-label", "Enlarged figure");
  const large = document.createElement("img");
  large.src = shown.getAttribute("src"); // the wide version, in the palette of the page
  large.alt = shown.alt;
  large.className = "dark-light";
  // on a phone as large as on a desk, to be moved about; on a desk as large as the window
  const natural = Number(shown.getAttribute("width"));
  const fitting = Math.min(0.94 * innerWidth, (0.86 * innerHeight * natural) / Number(shown.getAttribute("height")));
  large.style.width = `${Math.max(natural, fitting)}px`;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "rbal-close";
  close.setAttribute("aria-label", "Close");
  close.textContent = "×";
  const frame = document.createElement("div");
  frame.tabIndex = 0;
  frame.append(large);
  dialog.append(close, frame);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

function prepare(holder) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "rbal-enlarge";
  button.title = "Enlarge this figure";
  button.setAttribute("aria-label", "Enlarge this figure");
  button.textContent = "⤢";
  holder.append(button);
  holder.addEventListener("click", () => enlarge(holder));
}

// Pictures in one size only, whose words a phone would make too small: they keep their width, and scroll.
function frame(still) {
  const box = document.createElement("div");
  box.className = "rbal-still";
  still.replaceWith(box);
  box.append(still);
}

const STILLS = ".bd-article :is(.cell_output figure img:not(.rbal-img), img[src$='architecture.svg'])";
const WIDE = `.bd-article :is(mjx-container[display='true'], mjx-container.rbal-wide, .rbal-still,
  .pst-scrollable-table-container, .output.text_html:has(table.dataframe))`;

function markEdges(node) {
  const hidden = node.scrollWidth - node.clientWidth;
  const wide = hidden > 1;
  node.classList.toggle("rbal-more-left", wide && node.scrollLeft > 1);
  node.classList.toggle("rbal-more-right", wide && node.scrollLeft < hidden - 1);
  if (wide) node.tabIndex = 0; // the arrow keys move it
}

// A formula within a line does not break. Where it is wider than its line, it gets a line of its own, and scrolls there.
function giveRoom() {
  for (const node of document.querySelectorAll(".bd-article mjx-container:not([display='true'])")) {
    const line = node.closest("p, li, dd, figcaption, td");
    if (line && !node.closest("table") && node.getBoundingClientRect().width > line.clientWidth + 1)
      node.classList.add("rbal-wide");
  }
}

function watchEdges() {
  giveRoom();
  const seen = new ResizeObserver((entries) => entries.forEach((entry) => markEdges(entry.target)));
  for (const node of document.querySelectorAll(WIDE)) {
    node.addEventListener("scroll", () => markEdges(node), { passive: true });
    seen.observe(node);
    markEdges(node);
  }
}

document.querySelectorAll(".rbal-figure").forEach(prepare);
document.querySelectorAll(STILLS).forEach(frame);
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  watchEdges();
});
