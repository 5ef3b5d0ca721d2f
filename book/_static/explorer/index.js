/**
 * <rbal-explorer name="…">: one of the explorers of the book. Until this module runs, and wherever it does not, the static
 * figure inside the element stays.
 * @module
 */
import { mount } from "./explorer.js";
import metrics from "./explorers/metrics.js";
import mixing from "./explorers/mixing.js";
import phases from "./explorers/phases.js";
import scores from "./explorers/scores.js";
import tradeoff from "./explorers/tradeoff.js";
import widths from "./explorers/widths.js";

const DEFINITIONS = Object.fromEntries([metrics, tradeoff, mixing, scores, phases, widths].map((d) => [d.name, d]));

let loading;

/** Moments of the data sets and first settings, fetched once for all explorers of a page, or held by the script. */
function load() {
  const held = globalThis.rbalExplorerData;
  const get = (file) => held?.[file] ?? fetch(new URL(`./data/${file}.json`, import.meta.url)).then((r) => r.json());
  loading ??= Promise.all([get("moments"), get("defaults")]).then(([moments, defaults]) => ({ moments, defaults }));
  return loading;
}

class ExplorerElement extends HTMLElement {
  async connectedCallback() {
    if (this.explorer || this.starting) return;
    this.starting = true;
    const data = await load();
    this.explorer = mount(this, DEFINITIONS[this.getAttribute("name")], data);
    this.classList.add("x-live");
    if (location.hash === `#${this.id}`) this.scrollIntoView(); // the page grew since the browser went there
  }
}

customElements.define("rbal-explorer", ExplorerElement);
