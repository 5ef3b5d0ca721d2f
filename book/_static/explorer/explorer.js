/**
 * The frame of every explorer: controls, plots, a table of values, reset, a link to the setting, PNG and CSV.
 * @module
 */
import { make, makeControls, readState, writeState } from "./controls.js";
import { save, toCsv, toPng } from "./download.js";
import { Plot } from "./plot.js";

/**
 * @typedef {object} Definition
 * @property {string} name
 * @property {string} title
 * @property {string} intro one or two sentences: what to try
 * @property {(data: object) => import("./controls.js").Control[]} controls
 * @property {{name: string, height: number | ((width: number) => number)}[]} plots
 * @property {(state: object, data: object) => object} compute everything that is shown, from the state alone
 * @property {(result: object, state: object, data: object) => Iterator} [refine] adds to the result what takes longer, once
 *   the controls rest. A generator: it yields every few milliseconds, and goes on unless a control has moved. The result
 *   stays whole at every yield
 * @property {(result: object, state: object, change: (part: object) => void) => import("./plot.js").PlotSpec[]} draw
 * @property {(result: object, state: object) => [string, string, string?][]} readout label, value, and a colour
 * @property {(result: object, state: object) => object} [matrix] a confusion matrix: caption, columns, and rows of a name
 *   and cells {text, right}
 * @property {(result: object, state: object) => {header: string[], rows: (number|string)[][]}} table for the CSV
 */

const REST = 120; // ms without a change, after which the controls are taken to rest
const SLICE = 12; // ms of refining, after which others have their turn

/** A small table with a header row and a header column. */
function tableOf({ caption, columns, rows }) {
  const head = make("tr", {}, make("td"), ...columns.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map(([name, ...cells]) => {
    const values = cells.map(({ text, right }) => make("td", { className: right ? "x-right" : "x-wrong" }, text));
    return make("tr", {}, make("th", { scope: "row" }, name), ...values);
  });
  return make("table", {}, make("caption", {}, caption), head, ...body);
}

/** Whether the heading above an element, within its section, says the same as a title. */
function saidAbove(host, title) {
  const heading = host.closest("section")?.querySelector(":is(h1, h2, h3, h4)");
  return heading?.firstChild?.textContent.trim() === title;
}

/**
 * Put an explorer into an element.
 *
 * @param {HTMLElement} host
 * @param {Definition} definition
 * @param {{moments: object, defaults: object}} data
 */
export function mount(host, definition, data) {
  const { name } = definition;
  const defaults = data.defaults[name];
  const controls = definition.controls(data.moments);
  const state = readState(location.search, name, controls, defaults);
  const explorer = { name, defaults, state, result: null, ms: 0, busy: false };
  let waiting = 0;
  let resting = 0;

  const change = (part) => {
    Object.assign(explorer.state, part);
    waiting ||= requestAnimationFrame(update);
  };
  const panel = makeControls(controls, `x-${name}`, (key, value) => change({ [key]: value }));
  const boxes = definition.plots.map(({ name: part }) => make("div", { className: `x-box x-box-${part}` }));
  const readout = make("dl", { className: "x-readout" });
  const matrix = make("div", { className: "x-matrix" });
  const answers = make("div", { className: "x-answers" }, ...(definition.matrix ? [matrix] : []), readout);
  const said = make("span", { className: "x-said", role: "status" });
  const tools = make("div", { className: "x-tools" }, ...toolbar(), said);
  const heading = make("p", { className: "x-title", id: `x-${name}-title` }, definition.title);
  heading.hidden = saidAbove(host, definition.title);
  host.append(
    make(
      "section",
      { className: "x-explorer", ariaLabel: definition.title },
      make("div", { className: "x-intro" }, heading, make("p", {}, definition.intro)),
      make("div", { className: "x-main" }, make("div", { className: "x-plots" }, ...boxes), panel.element, answers),
      tools,
    ),
  );
  const plots = boxes.map((box, k) => new Plot(box, definition.plots[k].height));

  function update() {
    waiting = 0;
    const began = performance.now();
    explorer.result = definition.compute(explorer.state, data.moments);
    explorer.ms = performance.now() - began;
    panel.show(explorer.state);
    draw();
    rest();
    remember();
  }

  /** Refine once the controls rest, in slices, so that a slider that moves again does not wait. */
  function rest() {
    clearTimeout(resting);
    if (!definition.refine) return;
    const work = definition.refine(explorer.result, explorer.state, data.moments);
    explorer.busy = true;
    const slice = () => {
      const end = performance.now() + SLICE;
      while (!work.next().done)
        if (performance.now() > end) {
          resting = setTimeout(slice);
          return;
        }
      draw();
      explorer.busy = false;
    };
    resting = setTimeout(slice, REST);
  }

  function draw() {
    definition.draw(explorer.result, explorer.state, change).forEach((spec, k) => plots[k].draw(spec));
    const rows = definition.readout(explorer.result, explorer.state).map(([label, value, color]) => {
      const term = make("dt", {}, label);
      if (color) term.style.setProperty("--dot", `var(--x-${color})`);
      return make("div", { className: color ? "x-dotted" : "" }, term, make("dd", {}, value));
    });
    readout.replaceChildren(...rows);
    if (definition.matrix) matrix.replaceChildren(tableOf(definition.matrix(explorer.result, explorer.state)));
  }

  function remember() {
    const address = writeState(location.search, name, explorer.state, defaults) || location.pathname;
    try {
      history.replaceState(history.state, "", address + location.hash);
    } catch {
      // a page opened from a file has no address of its own to write to
    }
  }

  function toolbar() {
    const button = (text, onclick) => make("button", { type: "button", onclick }, text);
    const say = (text) => (said.textContent = text);
    return [
      button("Reset", () => {
        change(structuredClone(defaults));
        say("Back to the first setting.");
      }),
      button("Copy link", async () => {
        const link = new URL(writeState("", name, explorer.state, defaults) || location.pathname, location.href);
        link.hash = host.id;
        const done = await navigator.clipboard?.writeText(link.href).then(
          () => true,
          () => false,
        );
        say(done ? "Link copied." : `The link is ${link.href}`);
      }),
      button("Save PNG", async () => {
        save(await toPng(plots.map((p) => p.svg)), `rbal-${name}.png`);
        say("Figure saved.");
      }),
      button("Save CSV", () => {
        const { header, rows } = definition.table(explorer.result, explorer.state);
        save(toCsv(header, rows, explorer.state), `rbal-${name}.csv`);
        say("Table saved.");
      }),
    ];
  }

  update();
  return explorer;
}
