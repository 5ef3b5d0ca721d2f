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
 * @property {(v: number) => string} [format]
 * @property {[string, string][]} [options] of a choice or of flags: value and text
 * @property {(state: object) => boolean} [when] whether it is shown
 */

function range(control, id, change) {
  const { min, max, step, log, label, symbol, format = (v) => show(v, 3) } = control;
  const input = make("input", { type: "range", id, min: log ? 0 : min, max: log ? STOPS : max, step: log ? 1 : step });
  const output = make("output", { htmlFor: id });
  const value = () => (log ? tidy(min * (max / min) ** (input.value / STOPS)) : Number(input.value));
  input.addEventListener("input", () => change(value()));
  const name = make("label", { htmlFor: id }, label);
  if (symbol) name.append(" ", make("span", { className: "x-symbol" }, symbol));
  return {
    element: make("div", { className: "x-control" }, make("div", { className: "x-head" }, name, output), input),
    show(state) {
      const v = state[control.key];
      const position = log ? (STOPS * Math.log(v / min)) / Math.log(max / min) : v;
      if (!(log ? Math.round(position) === Number(input.value) : Number(input.value) === v)) input.value = position;
      output.value = format(v);
      input.setAttribute("aria-valuetext", format(v));
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
