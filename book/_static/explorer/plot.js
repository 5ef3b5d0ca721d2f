/**
 * Small SVG plots: axes, lines, bands, marks, a legend, and values where the pointer is. Colours are CSS variables, so
 * that a change of theme needs no redraw.
 * @module
 */

const MARGIN = { left: 48, right: 14, top: 10, bottom: 42 };
const CHARACTER = 6.6; // mean width of a character of the labels, in px

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const px = (value) => value.toFixed(2);

/** Width within an element, without its padding. */
function room(host) {
  const { paddingLeft, paddingRight } = getComputedStyle(host);
  return host.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}

/** A number to so many significant digits, without trailing zeros, with a true minus sign. */
export function show(value, digits = 4) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞";
  const text =
    Math.abs(value) < 1e-3 && value !== 0 ? value.toExponential(1) : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−");
}

/** Below this a number of order one is rounding, and counts as 0. */
const NOTHING = 1e-12;

/** A value between 0 and 1, or a quantity of order one, to so many decimals; a bound where these would all be 0. */
export function fixed(value, decimals = 3) {
  if (!Number.isFinite(value)) return show(value);
  const text = value.toFixed(decimals);
  if (Number(text) !== 0) return text.replace("-", "−");
  if (Math.abs(value) < NOTHING || decimals < 3) return (0).toFixed(decimals);
  const least = (10 ** -decimals).toFixed(decimals);
  return value > 0 ? `< ${least}` : `> −${least}`;
}

/** Round numbers that divide an interval into about n parts. */
function roundTicks(min, max, n) {
  const raw = (max - min) / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= raw * (1 - 1e-9));
  const ticks = [];
  for (let k = Math.ceil(min / step - 1e-9); k * step <= max * (1 + 1e-12) + step * 1e-9; k++) ticks.push(k * step);
  return ticks.map((t) => Number(t.toPrecision(12)));
}

function logTicks(min, max, n) {
  const decades = Math.log10(max / min);
  const factors = decades > n ? [1] : decades > n / 3 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let d = Math.floor(Math.log10(min)); d <= Math.ceil(Math.log10(max)); d++)
    for (const f of factors) {
      const t = Number((f * 10 ** d).toPrecision(3));
      if (t >= min * 0.999 && t <= max * 1.001) ticks.push(t);
    }
  return ticks;
}

/** Map from values to pixels, with its inverse and its ticks. */
function makeScale({ min, max, log = false, ticks }, from, to, n) {
  const f = log ? Math.log : (v) => v;
  const g = log ? Math.exp : (v) => v;
  const [a, b] = [f(min), f(max)];
  const scale = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
  scale.invert = (p) => g(a + ((p - from) / (to - from)) * (b - a));
  scale.ticks = ticks ?? (log ? logTicks(min, max, n) : roundTicks(min, max, n));
  return scale;
}

/** Colour of the palette as a CSS value. */
export const ink = (color) => `var(--x-${color})`;

function path(line, sx, sy) {
  let d = "";
  let pen = false;
  for (let i = 0; i < line.x.length; i++) {
    if (!Number.isFinite(line.y[i])) {
      pen = false;
      continue;
    }
    d += `${pen ? "L" : "M"}${px(sx(line.x[i]))} ${px(sy(line.y[i]))}`;
    pen = true;
  }
  return d;
}

function stroke({ color = "text", dash, width = 2, opacity = 1 }) {
  const dashes = dash ? `stroke-dasharray:${dash};` : "";
  return `style="fill:none;stroke:${ink(color)};stroke-width:${width};stroke-opacity:${opacity};${dashes}" stroke-linejoin="round"`;
}

const STAR = Array.from({ length: 10 }, (_, k) => {
  const radius = k % 2 ? 3.4 : 8;
  const angle = (Math.PI * k) / 5 - Math.PI / 2;
  return `${px(radius * Math.cos(angle))},${px(radius * Math.sin(angle))}`;
}).join(" ");

function mark({ shape = "dot", color = "text", radius = 4.5 }, x, y) {
  const halo = `style="fill:${ink(color)};stroke:${ink("ground")};stroke-width:1.5"`;
  if (shape === "star") return `<polygon points="${STAR}" transform="translate(${px(x)} ${px(y)})" ${halo}/>`;
  if (shape === "ring")
    return (
      `<circle cx="${px(x)}" cy="${px(y)}" r="9" style="fill:none;stroke:${ink("ground")};stroke-width:5"/>` +
      `<circle cx="${px(x)}" cy="${px(y)}" r="9" style="fill:none;stroke:${ink(color)};stroke-width:2.5"/>` +
      `<circle cx="${px(x)}" cy="${px(y)}" r="2.5" style="fill:${ink(color)};stroke:${ink("ground")};stroke-width:1"/>`
    );
  return `<circle cx="${px(x)}" cy="${px(y)}" r="${radius}" ${halo}/>`;
}

/** Legend in rows above the plot; returns its SVG and its height. */
function legend(entries, width) {
  let [x, row, svg] = [0, 0, ""];
  for (const line of entries) {
    const swatch = line.shape === "ring" ? 24 : line.shape ? 16 : 26;
    const w = swatch + 6 + CHARACTER * line.name.length + 14;
    if (x > 0 && x + w > width) [x, row] = [0, row + 1];
    const y = 10 + 20 * row;
    svg += line.shape
      ? mark(line, MARGIN.left + x + swatch / 2, y)
      : line.area
        ? `<rect x="${MARGIN.left + x}" y="${y - 6}" width="22" height="12" rx="2" style="fill:${ink(line.color)};fill-opacity:${line.area}"/>`
        : `<line x1="${MARGIN.left + x}" x2="${MARGIN.left + x + 22}" y1="${y}" y2="${y}" ${stroke(line)}/>`;
    svg += `<text x="${MARGIN.left + x + swatch + 2}" y="${y + 4}" class="x-label">${escape(line.name)}</text>`;
    x += w;
  }
  return { svg, height: entries.length ? 20 * (row + 1) + 6 : 0 };
}

/**
 * @typedef {object} Axis
 * @property {number} min
 * @property {number} max
 * @property {string} label
 * @property {boolean} [log]
 * @property {number[]} [ticks]
 * @property {(v: number) => string} [format]
 *
 * @typedef {object} PlotSpec
 * @property {string} summary what the figure shows, for those who do not see it
 * @property {Axis} x
 * @property {Axis} y
 * @property {{name: string, x: ArrayLike<number>, y: ArrayLike<number>, color: string, dash?: string, width?: number,
 *   quiet?: boolean}[]} [lines] quiet ones have no place in the legend
 * @property {{from: number, to: number, color: string, name?: string}[]} [bands] vertical
 * @property {{x: ArrayLike<number>, y: ArrayLike<number>, color: string, opacity?: number}[]} [areas] down to 0
 * @property {{x?: number, y?: number, color?: string, dash?: string, label?: string}[]} [rules]
 * @property {{x: number, y: number, color: string, shape?: string, name?: string}[]} [points]
 * @property {{href: string}} [image] drawn over the whole plane
 * @property {(x: number, y: number) => {title: string, rows: [string, string, string?][],
 *   dots?: {x: number, y: number, color: string}[]}} [hover]
 * @property {(x: number, y: number) => void} [pick] the reader pressed or dragged there
 */

/** A plot in an element. Call draw with a PlotSpec; it is drawn again when the width changes. */
export class Plot {
  /**
   * @param {HTMLElement} host
   * @param {number} height of the plane in px, or a function of its width
   */
  constructor(host, height) {
    this.host = host;
    this.height = height;
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("role", "img");
    this.svg.classList.add("x-plot");
    this.tip = document.createElement("div");
    this.tip.className = "x-tip";
    this.tip.setAttribute("aria-hidden", "true");
    this.tip.hidden = true;
    host.append(this.svg, this.tip);
    new ResizeObserver(() => this.spec && room(host) !== this.width && this.draw(this.spec)).observe(host);
    this.listen();
  }

  draw(spec) {
    this.spec = spec;
    this.width = room(this.host) || 480;
    const { lines = [], bands = [], points = [] } = spec;
    const entries = [...lines, ...bands.map((b) => ({ area: 0.25, ...b })), ...points];
    const key = legend(
      entries.filter((entry) => entry.name && !entry.quiet),
      this.width - MARGIN.left - MARGIN.right,
    );
    const plane = typeof this.height === "function" ? this.height(this.width) : this.height;
    const top = MARGIN.top + key.height + 18; // 18 for the label of the y axis, above it
    const [left, right, bottom] = [MARGIN.left, this.width - MARGIN.right, top + plane];
    const sx = makeScale(spec.x, left, right, this.width < 420 ? 4 : 7);
    const sy = makeScale(spec.y, bottom, top, 5);
    this.frame = { sx, sy, left, right, top, bottom };
    const full = bottom + MARGIN.bottom;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${full}`);
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("height", full);
    this.svg.setAttribute("aria-label", spec.summary);
    this.svg.innerHTML =
      `<g transform="translate(0 ${MARGIN.top})">${key.svg}</g>` +
      this.scales(spec) +
      this.inside(spec) +
      this.above(spec) +
      '<g class="x-hover"></g>';
    if (this.pointer) this.point(this.pointer);
  }

  /** Ticks, grid, labels of the axes, and the image behind everything. */
  scales({ x, y, image }) {
    const { sx, sy, left, right, top, bottom } = this.frame;
    const write = (axis, value, at, place, anchor, text) =>
      `<text ${place} text-anchor="${anchor}" class="x-tick" data-axis="${axis}" data-value="${value}" ` +
      `data-at="${px(at)}">${text}</text>`;
    const label = (at, height, anchor, text) =>
      `<text x="${at}" y="${height}" class="x-label x-axis-label" text-anchor="${anchor}">${escape(text)}</text>`;
    let svg = image
      ? `<image href="${image.href}" x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" ` +
        'preserveAspectRatio="none"/>'
      : "";
    for (const t of sy.ticks) {
      const at = sy(t);
      if (!image) svg += `<line x1="${left}" x2="${right}" y1="${px(at)}" y2="${px(at)}" class="x-grid"/>`;
      svg += write("y", t, at, `x="${left - 7}" y="${px(at + 4)}"`, "end", y.format ? y.format(t) : show(t));
    }
    for (const t of sx.ticks) {
      const at = sx(t);
      svg += `<line x1="${px(at)}" x2="${px(at)}" y1="${bottom}" y2="${bottom + 4}" class="x-axis"/>`;
      svg += write("x", t, at, `x="${px(at)}" y="${bottom + 17}"`, "middle", x.format ? x.format(t) : show(t));
    }
    const start = left + CHARACTER * y.label.length > this.width ? 2 : left;
    return svg + label(start, top - 8, "start", y.label) + label((left + right) / 2, bottom + 36, "middle", x.label);
  }

  /** What may reach beyond the plane, and is cut there. */
  inside({ bands = [], areas = [], rules = [], lines = [], y }) {
    const { sx, sy, left, right, top, bottom } = this.frame;
    const base = px(sy(Math.max(y.min, 0)));
    let svg = "";
    for (const b of bands) {
      const width = Math.max(sx(b.to) - sx(b.from), 1);
      svg +=
        `<rect x="${px(sx(b.from))}" y="${top}" width="${px(width)}" height="${bottom - top}" ` +
        `style="fill:${ink(b.color)};fill-opacity:${b.opacity ?? 0.16}"/>`;
    }
    for (const a of areas) {
      const end = px(sx(a.x[a.x.length - 1]));
      svg +=
        `<path d="${path(a, sx, sy)}L${end} ${base}L${px(sx(a.x[0]))} ${base}Z" ` +
        `style="fill:${ink(a.color)};fill-opacity:${a.opacity ?? 0.3};stroke:none"/>`;
    }
    for (const r of rules) svg += this.rule(r, sx, sy);
    for (const l of lines) svg += `<path d="${path(l, sx, sy)}" data-name="${escape(l.name ?? "")}" ${stroke(l)}/>`;
    const clip = `<rect x="${left}" y="${top - 1}" width="${right - left}" height="${bottom - top + 2}"/>`;
    return `<clipPath id="${this.clipId()}">${clip}</clipPath><g clip-path="url(#${this.clipId()})">${svg}</g>`;
  }

  /** Marks and axes, over the lines. */
  above({ points = [], x, y }) {
    const { sx, sy, left, right, top, bottom } = this.frame;
    const shown = points.filter((p) => within(p, x, y));
    return (
      shown.map((p) => mark(p, sx(p.x), sy(p.y))).join("") +
      `<line x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}" class="x-axis"/>` +
      `<line x1="${left}" x2="${left}" y1="${top}" y2="${bottom}" class="x-axis"/>`
    );
  }

  clipId() {
    this.id ??= `x-clip-${Math.random().toString(36).slice(2, 9)}`;
    return this.id;
  }

  rule(r, sx, sy) {
    const { left, right, top, bottom } = this.frame;
    const look = stroke({ color: r.color ?? "muted", dash: r.dash, width: r.width ?? 1 });
    if (r.x !== undefined) {
      const x = px(sx(r.x));
      const label = r.label
        ? `<text x="${px(sx(r.x) + 5)}" y="${top + 12}" class="x-note">${escape(r.label)}</text>`
        : "";
      return `<line x1="${x}" x2="${x}" y1="${top}" y2="${bottom}" ${look}/>${label}`;
    }
    const y = px(sy(r.y));
    const label = r.label
      ? `<text x="${right - 4}" y="${px(sy(r.y) - 5)}" text-anchor="end" class="x-note">${escape(r.label)}</text>`
      : "";
    return `<line x1="${left}" x2="${right}" y1="${y}" y2="${y}" ${look}/>${label}`;
  }

  listen() {
    const place = (event) => {
      const box = this.svg.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    this.svg.addEventListener("pointermove", (event) => {
      this.pointer = place(event);
      this.point(this.pointer);
      if (this.dragging) this.pick(this.pointer);
    });
    this.svg.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.clear();
    });
    this.svg.addEventListener("pointerdown", (event) => {
      if (!this.spec?.pick || !this.within(place(event))) return;
      this.dragging = true;
      this.svg.setPointerCapture(event.pointerId);
      this.pick(place(event));
    });
    for (const name of ["pointerup", "pointercancel"]) this.svg.addEventListener(name, () => (this.dragging = false));
  }

  within({ x, y }) {
    const f = this.frame;
    return f && x >= f.left && x <= f.right && y >= f.top && y <= f.bottom;
  }

  pick({ x, y }) {
    const { sx, sy, left, right, top, bottom } = this.frame;
    const clamp = (v, a, b) => Math.min(Math.max(v, a), b);
    this.spec.pick(sx.invert(clamp(x, left, right)), sy.invert(clamp(y, top, bottom)));
  }

  clear() {
    this.tip.hidden = true;
    const layer = this.svg.querySelector(".x-hover");
    if (layer) layer.innerHTML = "";
  }

  /** Show the values at a place. */
  point(at) {
    if (!this.spec || !this.within(at)) return this.clear();
    const { sx, sy, top, bottom } = this.frame;
    const seen = (this.spec.hover ?? ((x) => nearest(this.spec, x)))(sx.invert(at.x), sy.invert(at.y));
    if (!seen) return this.clear();
    const x = seen.x === undefined ? at.x : sx(seen.x);
    const dots = (seen.dots ?? []).map((d) => mark({ ...d, radius: 4 }, sx(d.x), sy(d.y))).join("");
    const line =
      seen.x === undefined ? "" : `<line x1="${px(x)}" x2="${px(x)}" y1="${top}" y2="${bottom}" class="x-cursor"/>`;
    this.svg.querySelector(".x-hover").innerHTML = line + dots;
    this.tip.innerHTML =
      `<strong>${escape(seen.title)}</strong>` +
      seen.rows
        .map(
          ([name, value, color]) =>
            `<span>${color ? `<i style="background:${ink(color)}"></i>` : ""}${escape(name)}</span><b>${escape(value)}</b>`,
        )
        .join("");
    this.tip.hidden = false;
    const w = this.tip.offsetWidth;
    const h = this.tip.offsetHeight;
    this.tip.style.left = `${x + 14 + w > this.width ? Math.max(x - 14 - w, 0) : x + 14}px`;
    this.tip.style.top = `${Math.max(Math.min(at.y - h / 2, bottom - h), 0)}px`;
  }
}

const within = (p, x, y) =>
  Number.isFinite(p.y) && p.x >= x.min && p.x <= x.max && p.y >= y.min - 1e-9 && p.y <= y.max + 1e-9;

/** Index of the entry of a sorted array that is nearest to a value. */
export function indexNear(xs, x) {
  let [lo, hi] = [0, xs.length - 1];
  while (hi - lo > 1) {
    const middle = (lo + hi) >> 1;
    if (xs[middle] > x) hi = middle;
    else lo = middle;
  }
  return x - xs[lo] < xs[hi] - x ? lo : hi;
}

/** Values of all named lines at the nearest point. */
function nearest(spec, x) {
  const lines = (spec.lines ?? []).filter((l) => l.name && l.x.length > 2);
  if (!lines.length) return null;
  const at = lines[0].x[indexNear(lines[0].x, x)];
  const seen = lines.map((l) => ({ ...l, value: l.y[indexNear(l.x, at)] })).filter((l) => Number.isFinite(l.value));
  const format = spec.x.format ?? ((v) => show(v, 3));
  return {
    x: at,
    title: `${spec.x.short ?? spec.x.label} = ${format(at)}`,
    rows: seen.map((l) => [l.name, fixed(l.value), l.color]),
    dots: seen.map((l) => ({ x: at, y: l.value, color: l.color })),
  };
}
