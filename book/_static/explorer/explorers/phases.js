/**
 * The phase diagram over the plane of class sizes, and the point you are at.
 * @module
 */
import { Metrics } from "../metrics.js";
import { fixed, show } from "../plot.js";
import { criticalMargins, solve, vanishingMultipliers } from "../solver.js";
import { dataChoice, geomspace, kappaSlider, momentsOf, sizeSlider, stretchSlider, PHASE_NAMES } from "./shared.js";

const [LOW, HIGH, N] = [0.05, 50, 33];
const sphere = (s) => s.model === "perceptron";

const maps = new Map();

/**
 * What decides the phase over the plane: the critical margin of the perceptron, or the multiplier of the SVM's vanishing
 * weights. Exchanging the classes changes neither, so that half of the plane is enough. Kept for each data set.
 */
function phaseMap(data, state) {
  const key = [state.data, state.model, state.stretch].join(" ");
  if (!maps.has(key)) {
    const moments = momentsOf(data, state);
    const size = geomspace(LOW, HIGH, N);
    const decide = sphere(state) ? criticalMargins : vanishingMultipliers;
    const value = size.map(() => new Float64Array(N));
    for (let i = 0; i < N; i++) {
      const half = Array.from({ length: N - i }, (_, k) => [size[i], size[i + k]]);
      decide(moments, half).forEach((v, k) => (value[i][i + k] = value[i + k][i] = v));
    }
    if (maps.size > 12) maps.clear();
    maps.set(key, { size, value });
  }
  return maps.get(key);
}

/** Segments of the line on which the map has a given level, by marching squares in the logarithms of the sizes. */
function contour({ size, value }, level) {
  const segments = [];
  const log = size.map(Math.log);
  const cut = (i, j, k, l) => {
    const t = (level - value[i][j]) / (value[k][l] - value[i][j]);
    return [Math.exp(log[i] + t * (log[k] - log[i])), Math.exp(log[j] + t * (log[l] - log[j]))];
  };
  for (let i = 0; i + 1 < size.length; i++)
    for (let j = 0; j + 1 < size.length; j++) {
      const corners = [
        [i, j],
        [i + 1, j],
        [i + 1, j + 1],
        [i, j + 1],
      ];
      const ends = [];
      for (let k = 0; k < 4; k++) {
        const [a, b] = [corners[k], corners[(k + 1) % 4]];
        if (value[a[0]][a[1]] > level !== value[b[0]][b[1]] > level) ends.push(cut(...a, ...b));
      }
      for (let k = 0; k + 1 < ends.length; k += 2) segments.push([ends[k], ends[k + 1]]);
    }
  return segments;
}

/** Segments as one line with gaps. */
function joined(segments) {
  const x = [];
  const y = [];
  for (const [a, b] of segments) {
    x.push(a[0], b[0], NaN);
    y.push(a[1], b[1], NaN);
  }
  return { x, y };
}

// Blue to yellow, dark to light: the order survives any colour vision and a grey printer.
const RAMP = [
  [0, 34, 78],
  [57, 72, 107],
  [112, 113, 115],
  [165, 155, 113],
  [221, 203, 92],
  [254, 232, 56],
];

function shade(t) {
  const place = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1);
  const k = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[k].map((c, j) => Math.round(c + (place - k) * (RAMP[k + 1][j] - c)));
}

/** The map as an image of N × N pixels, smoothed by the browser as it is enlarged. */
function picture({ value }, low, high) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = N;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(N, N);
  for (let i = 0; i < N; i++)
    for (let j = 0; j < N; j++) {
      const v = value[i][j];
      const color = Number.isNaN(v) ? [128, 128, 128] : shade((v - low) / (high - low));
      pixels.data.set([...color, 255], 4 * ((N - 1 - j) * N + i));
    }
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

/** @type {import("../explorer.js").Definition} */
export default {
  name: "phases",
  title: "Which phase are you in?",
  intro:
    "Each point of the plane is a training set. With few examples or a small margin it can be separated without " +
    "loss (SAT); beyond the line it cannot (UNSAT). An SVM has another border: past it, its weights vanish. The " +
    "lighter, the wider the margin that can be reached. Press anywhere to move there.",
  controls: (moments) => [
    dataChoice(moments),
    {
      key: "model",
      kind: "choice",
      label: "Classifier",
      options: [
        ["perceptron", "spherical perceptron"],
        ["svm", "soft-margin SVM"],
      ],
    },
    kappaSlider(sphere),
    { key: "lam", kind: "range", label: "ridge", symbol: "λ̃", min: 1e-3, max: 10, log: true, when: (s) => !sphere(s) },
    sizeSlider("alpha_pos", "positives per feature", "α⁺"),
    sizeSlider("alpha_neg", "negatives per feature", "α⁻"),
    stretchSlider(),
  ],
  plots: [{ name: "plane", height: (w) => Math.min(0.8 * (w - 62), 400) }],

  compute(state, data) {
    const moments = momentsOf(data, state);
    const map = phaseMap(data, state);
    const level = sphere(state) ? state.kappa : 0;
    const sizes = [[state.alpha_pos, state.alpha_neg]];
    const rest = sphere(state) ? { kappa: state.kappa } : { kappa: 1, model: "svm", lam: state.lam };
    return {
      map,
      level,
      border: contour(map, level),
      here: (sphere(state) ? criticalMargins : vanishingMultipliers)(moments, sizes)[0],
      solution: solve(moments, { alphaPos: state.alpha_pos, alphaNeg: state.alpha_neg, ...rest }),
    };
  },

  draw({ map, level, border, here, solution }, state, change) {
    const axis = { min: LOW, max: HIGH, log: true };
    const clamp = (v) => Number(Math.min(Math.max(v, LOW), HIGH).toPrecision(3));
    const flat = map.value
      .flatMap((row) => [...row])
      .filter(Number.isFinite)
      .sort((a, b) => a - b);
    const [low, high] = [flat[0], flat[Math.floor(0.97 * (flat.length - 1))]];
    map.href ??= picture(map, low, high);
    const what = sphere(state) ? "critical margin" : "multiplier of vanishing weights";
    const name = sphere(state) ? `separable up to here at κ = ${show(level, 3)}` : "weights vanish beyond";
    return [
      {
        summary: `Phase diagram over the class sizes. At ${state.alpha_pos} positives and ${state.alpha_neg} negatives per feature: ${PHASE_NAMES[solution.phase]}; ${what} ${fixed(here)}.`,
        x: { ...axis, label: "positives per feature, α⁺" },
        y: { ...axis, label: "negatives per feature, α⁻" },
        image: { href: map.href },
        lines: [
          { ...joined(border), color: "ground", width: 5, quiet: true },
          { ...joined(border), name, color: "vermillion", width: 2.5 },
        ],
        points: [{ x: state.alpha_pos, y: state.alpha_neg, color: "vermillion", shape: "ring", name: "you are here" }],
        hover: (x, y) => ({
          title: `α⁺ ${show(x, 3)}, α⁻ ${show(y, 3)}`,
          rows: [[sphere(state) ? "critical margin" : "vanishing k̂", fixed(interpolate(map, x, y))]],
        }),
        pick: (x, y) => change({ alpha_pos: clamp(x), alpha_neg: clamp(y) }),
      },
    ];
  },

  readout({ here, solution }, state) {
    const m = Metrics.of(solution);
    return [
      ["phase", solution.phase],
      [sphere(state) ? "critical margin" : "vanishing k̂", fixed(here, 4)],
      ["q", fixed(solution.q, 4)],
      ["r", fixed(solution.r, 4)],
      ["b", fixed(solution.b, 4)],
      [solution.phase === "SAT" ? "spread w" : "susceptibility x", show(solution.x, 4)],
      ["k̂", show(solution.kHat, 4)],
      ["training loss", fixed(solution.trainLoss, 4)],
      ["BA", fixed(m.ba(), 4)],
      ["AUC", fixed(m.auc(), 4)],
    ];
  },

  table({ map }) {
    const rows = map.size.flatMap((a, i) => map.size.map((b, j) => [a, b, map.value[i][j]]));
    return { header: ["alpha_pos", "alpha_neg", "decides"], rows };
  },
};

/** The map between its nodes, linear in the logarithms of the sizes. */
function interpolate({ value }, x, y) {
  const place = (v) => Math.min(Math.max((Math.log(v / LOW) / Math.log(HIGH / LOW)) * (N - 1), 0), N - 1.000001);
  const [u, v] = [place(x), place(y)];
  const [i, j] = [Math.floor(u), Math.floor(v)];
  const [s, t] = [u - i, v - j];
  return (
    (1 - s) * ((1 - t) * value[i][j] + t * value[i][j + 1]) + s * ((1 - t) * value[i + 1][j] + t * value[i + 1][j + 1])
  );
}
