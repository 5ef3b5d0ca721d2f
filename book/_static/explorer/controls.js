/**
 * Native form controls with a label and a value beside them, one function for each kind. A control shows a state and
 * tells of changes; it keeps nothing.
 * @module
 */
import { show } from "./plot.js";

/** Positions of a logarithmic slider between its ends. */
const STOPS = 240;

/** Element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Numbers that sliders give have three digits, so that addresses stay short. */
const tidy = (value) => Number(value.toPrecision(3));

/** Round numbers of a decade, at which the arrow keys stop in the box of a logarithmic slider. */
const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The round number next above (side 1) or below (side -1) a positive one. */
function nextRound(value, side) {
  const power = 10 ** Math.floor(Math.log10(value * (1 + 1e-9)));
  const places = [0.1, 1].flatMap((p) => ROUND.map((f) => tidy(f * p * power)));
  if (side > 0) return places.find((v) => v > value * (1 + 1e-9));
  return places.findLast((v) => v < value * (1 - 1e-9));
}

/**
 * A box in which the value of a slider can be typed. It follows the slider, except while someone types a number that it
 * already shows; what is no number, or out of range, is put right as the box is left.
 */
function numberBox({ min, max, step, log, label, unit = "" }, id, change) {
  const scale = unit === "%" ? 100 : 1;
  const shown = (v) => String(Number((v * scale).toPrecision(6)));
  const properties = { type: "number", id: `${id}-box`, min: shown(min), max: shown(max), step: "any" };
  const box = make("input", { ...properties, className: "x-number", ariaLabel: `${label}, as a number` });
  let now = NaN;
  const clamp = (v) => Math.min(Math.max(v, min), max);
  const typed = () => Number((box.valueAsNumber / scale).toPrecision(12));
  box.addEventListener("input", () => typed() >= min && typed() <= max && change(typed()));
  box.addEventListener("change", () => {
    if (Number.isNaN(typed())) box.value = shown(now);
    else if (typed() !== clamp(typed())) change(clamp(typed()));
  });
  box.addEventListener("keydown", (event) => {
    const side = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter") event.preventDefault(); // there is no form to send
    if (!side) return;
    event.preventDefault();
    change(clamp(log ? nextRound(now, side) : Number((now + side * step).toPrecision(9))));
  });
  const before = unit === "×" ? [make("span", { className: "x-unit" }, unit)] : [];
  const after = unit === "%" ? [make("span", { className: "x-unit" }, unit)] : [];
  return {
    element: make("span", { className: "x-value" }, ...before, box, ...after),
    show(v) {
      now = v;
      if (typed() !== v) box.value = shown(v);
    },
  };
}

/**
 * @typedef {object} Control
 * @property {string} key name in the state, and in the address
 * @property {"range"|"choice"|"flag"|"flags"} kind
 * @property {string} label
 * @property {string} [symbol]
 * @property {number} [min]
 * @property {number} [max]
 * @property {number} [step] for a linear slider
 * @property {boolean} [log]
 * @property {string} [hint]
 * @property {"×"|"%"} [unit] of the number: a factor, or a share that is written in per cent
 * @property {[string, string][]} [options] of a choice or of flags: value and text
 * @property {(state: object) => boolean} [when] whether it is shown
 */

function range(control, id, change) {
  const { min, max, step, log, label, symbol, unit } = control;
  const input = make("input", { type: "range", id, min: log ? 0 : min, max: log ? STOPS : max, step: log ? 1 : step });
  const box = numberBox(control, id, change);
  const said = (v) => (unit === "%" ? `${show(100 * v, 3)} %` : unit ? `${unit} ${show(v, 3)}` : show(v, 3));
  const value = () => (log ? tidy(min * (max / min) ** (input.value / STOPS)) : Number(input.value));
  input.addEventListener("input", () => change(value()));
  const name = make("label", { htmlFor: id }, label);
  if (symbol) name.append(" ", make("span", { className: "x-symbol" }, symbol));
  return {
    element: make("div", { className: "x-control x-slider" }, name, input, box.element),
    show(state) {
      const v = state[control.key];
      const position = log ? (STOPS * Math.log(v / min)) / Math.log(max / min) : v;
      if (!(log ? Math.round(position) === Number(input.value) : Number(input.value) === v)) input.value = position;
      box.show(v);
      input.setAttribute("aria-valuetext", said(v));
    },
  };
}

function choice(control, id, change) {
  const options = control.options.map(([value, text]) => make("option", { value }, text));
  const input = make("select", { id }, ...options);
  input.addEventListener("input", () => change(input.value));
  return {
    element: make("div", { className: "x-control" }, make("label", { htmlFor: id }, control.label), input),
    show: (state) => (input.value = state[control.key]),
  };
}

function flag(control, id, change) {
  const input = make("input", { type: "checkbox", id });
  input.addEventListener("input", () => change(input.checked));
  return {
    element: make("div", { className: "x-control x-flag" }, input, make("label", { htmlFor: id }, control.label)),
    show: (state) => (input.checked = state[control.key]),
  };
}

/** Several check boxes whose state is a list of the checked ones. */
function flags(control, id, change) {
  const inputs = control.options.map(([value], k) => make("input", { type: "checkbox", id: `${id}-${k}`, value }));
  for (const input of inputs)
    input.addEventListener("input", () => change(inputs.filter((i) => i.checked).map((i) => i.value)));
  const boxes = control.options.map(([, text], k) =>
    make("span", { className: "x-flag" }, inputs[k], make("label", { htmlFor: inputs[k].id }, text)),
  );
  const legend = make("legend", {}, control.label);
  return {
    element: make("fieldset", { className: "x-control x-flags" }, legend, ...boxes),
    show(state) {
      for (const input of inputs) input.checked = state[control.key].includes(input.value);
    },
  };
}

const KINDS = { range, choice, flag, flags };

/**
 * All controls of an explorer.
 *
 * @param {Control[]} controls
 * @param {string} prefix of the ids
 * @param {(key: string, value: *) => void} change
 */
export function makeControls(controls, prefix, change) {
  const made = controls.map((control) => ({
    control,
    ...KINDS[control.kind](control, `${prefix}-${control.key}`, (value) => change(control.key, value)),
  }));
  for (const { control, element } of made) if (control.hint) element.append(make("small", {}, control.hint));
  return {
    element: make("form", { className: "x-controls", onsubmit: () => false }, ...made.map((m) => m.element)),
    show(state) {
      for (const { control, element, show } of made) {
        element.hidden = control.when ? !control.when(state) : false;
        show(state);
      }
    },
  };
}

// ---- the state in the address

const parse = (text, like, control) => {
  if (Array.isArray(like)) {
    const known = control.options.map(([value]) => value);
    return text ? text.split(" ").filter((v) => known.includes(v)) : [];
  }
  if (typeof like === "boolean") return text === "1";
  if (typeof like === "number") {
    const value = Number(text);
    return text !== "" && Number.isFinite(value) ? Math.min(Math.max(value, control.min), control.max) : like;
  }
  return control.options.some(([value]) => value === text) ? text : like;
};

const write = (value) => (Array.isArray(value) ? value.join(" ") : typeof value === "boolean" ? Number(value) : value);

/** The state that an address asks for; what it does not name, or names wrongly, is as by default. */
export function readState(search, name, controls, defaults) {
  const query = new URLSearchParams(search);
  const state = structuredClone(defaults);
  for (const control of controls) {
    const text = query.get(`${name}.${control.key}`);
    if (text !== null) state[control.key] = parse(text, defaults[control.key], control);
  }
  return state;
}

/** The query that leads back to a state: only what differs from the defaults; other explorers' parts are kept. */
export function writeState(search, name, state, defaults) {
  const query = new URLSearchParams(search);
  for (const key of Object.keys(defaults)) {
    query.delete(`${name}.${key}`);
    if (JSON.stringify(state[key]) !== JSON.stringify(defaults[key])) query.set(`${name}.${key}`, write(state[key]));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}
