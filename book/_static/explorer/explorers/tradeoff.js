/**
 * Balanced accuracy against the share of negatives, and the window in which a margin pays.
 * @module
 */
import { Metrics } from "../metrics.js";
import { fixed, show } from "../plot.js";
import { walker } from "../solver.js";
import { NARROWEST, tradeoffWindow } from "../strategies.js";
import {
  dataChoice,
  geomspace,
  heightOf,
  kappaSlider,
  linspace,
  marginColor,
  momentsOf,
  satBands,
  sizeSlider,
  stretchSlider,
  valuesOf,
} from "./shared.js";

const N = 200;
const FEW = 49;
const MARGINS = geomspace(0.05, 20, 25);
const point = (state, rho, kappa = state.kappa) => ({
  alphaPos: state.alpha_pos,
  alphaNeg: (state.alpha_pos * rho) / (1 - rho),
  kappa,
});

const curvesOf = (rho, solutions) => ({
  rho,
  solutions,
  ba: valuesOf(solutions, (s) => Metrics.of(s).ba()),
  best: valuesOf(solutions, (s) => Metrics.of(s).bestBa()),
});

/**
 * Solutions at shares of negatives, from the largest down: a walk from sets that are not separable into those that are
 * is many times quicker than one the other way. A generator, which yields every few points and returns the solutions.
 */
function* walk(moments, state, rho, kappa) {
  const next = walker(moments, undefined, true);
  const order = rho.map((_, k) => k).sort((i, j) => rho[j] - rho[i]);
  const solutions = new Array(rho.length);
  for (const [done, k] of order.entries()) {
    solutions[k] = next(point(state, rho[k], kappa));
    if (done % 10 === 9) yield;
  }
  return solutions;
}

/** What a generator returns, at once. */
function finish(generator) {
  let step = generator.next();
  while (!step.done) step = generator.next();
  return step.value;
}

/** The window as it is read off a curve, to about 0.001, or null where the curve is too coarse for that. */
function windowOf(rho, ba) {
  const middle = (rho.length - 1) / 2;
  const half = 0.5 + 0.5 * (ba[middle] - 0.5);
  const edges = [-1, 1].map((side) => {
    let k = middle;
    while (rho[k + side] !== undefined && ba[k] >= half) k += side;
    if (Math.abs(k - middle) < 4) return NaN;
    if (!(ba[k] < half)) return rho[k]; // it reaches beyond the curve
    return rho[k] + ((rho[k - side] - rho[k]) * (half - ba[k])) / (ba[k - side] - ba[k]);
  });
  const [low, high] = edges;
  return high > low ? { low, high, width: high - low, peak: ba[middle], resolved: true, rough: true } : null;
}

// Peak and width over all margins, for the last data and size: they do not depend on the margin at hand.
let windows = { key: "", curve: [] };
/** Width of a window, or the bound below which it is not resolved. */
const widthOf = (window) => (window.resolved ? show(window.width, window.rough ? 2 : 4) : `< ${show(NARROWEST)}`);
const keyOf = (state) => [state.data, state.stretch, state.alpha_pos].join(" ");

/** @type {import("../explorer.js").Definition} */
export default {
  name: "tradeoff",
  title: "Balance against performance",
  intro:
    "Trained on balanced data, some margin is best: for the spins, of equal variance, the largest; for features of " +
    "unequal variance, as in all other sets, a finite one (the top of the full curve below). Trained on others, a large " +
    "margin fails. The shaded window is where more than half of what was learnt at balance is kept: drag the margin " +
    "to the right and watch it close.",
  controls: (moments) => [
    dataChoice(moments),
    kappaSlider(),
    sizeSlider("alpha_pos", "positives per feature", "α⁺"),
    stretchSlider(),
    {
      key: "probe",
      kind: "range",
      label: "read off at",
      symbol: "ρ⁻",
      min: 0.02,
      max: 0.98,
      step: 0.01,
    },
  ],
  plots: [
    { name: "curves", height: heightOf(270, 170) },
    { name: "windows", height: 120 },
  ],

  /** Few points while a slider moves, so that a frame is short; the rest follows when it rests. */
  compute(state, data) {
    const moments = momentsOf(data, state);
    const rho = linspace(0.02, 0.98, FEW);
    const solutions = finish(walk(moments, state, [...rho, state.probe]));
    const probe = solutions.pop();
    const curves = curvesOf(rho, solutions);
    const rest = { kappa: state.kappa };
    return {
      ...curves,
      probe,
      others: [state.kappa / 2, state.kappa * 2].map((kappa) => ({ kappa, ba: [] })),
      window: windowOf(rho, curves.ba) ?? tradeoffWindow(moments, state.alpha_pos, rest, 1e-3),
      curve: windows.key === keyOf(state) ? windows.curve : null,
    };
  },

  *refine(result, state, data) {
    const moments = momentsOf(data, state);
    const rho = linspace(0.02, 0.98, N);
    const solutions = yield* walk(moments, state, rho);
    const others = [];
    for (const { kappa } of result.others)
      others.push({ kappa, ba: curvesOf(rho, yield* walk(moments, state, rho, kappa)).ba });
    const window = tradeoffWindow(moments, state.alpha_pos, { kappa: state.kappa });
    yield;
    let curve = result.curve;
    if (!curve) {
      curve = [];
      for (const kappa of MARGINS) {
        curve.push(tradeoffWindow(moments, state.alpha_pos, { kappa }, 0.01));
        yield;
      }
      windows = { key: keyOf(state), curve };
    }
    Object.assign(result, curvesOf(rho, solutions), { others, window, curve });
  },

  draw({ rho, solutions, others, ba, best, window, curve, probe }, state, change) {
    const kappaName = (k) => `κ = ${show(k, 3)}`;
    const at = Metrics.of(probe).ba();
    const color = marginColor(state.kappa);
    return [
      {
        summary: `Balanced accuracy against the share of negatives at margin ${state.kappa}: ${fixed(window.peak)} at balance, more than half of that gain from ${fixed(window.low)} to ${fixed(window.high)}.`,
        x: { min: 0, max: 1, label: "share of negatives in the training set, ρ⁻", short: "ρ⁻" },
        y: {
          min: 0.48,
          max: Math.min(1, Math.ceil((Math.max(...best.filter(Number.isFinite), window.peak) + 0.02) * 20) / 20),
          label: "balanced accuracy",
        },
        bands: [
          { from: window.low, to: window.high, color, opacity: 0.13, name: "window" },
          ...satBands(rho, solutions),
        ],
        rules: [{ y: 0.5 }, { x: state.probe, dash: "3 3" }],
        lines: [
          ...others.map(({ kappa, ba: y }, k) => ({
            name: kappaName(kappa),
            x: y.length ? rho : [],
            y,
            color: marginColor(kappa),
            width: 1.5,
            dash: ["7 3", "7 3 2 3"][k],
          })),
          { name: "moved threshold", x: rho, y: best, color, width: 1.5, dash: "1.5 4" },
          { name: kappaName(state.kappa), x: rho, y: ba, color, width: 2.6 },
        ],
        points: [{ x: state.probe, y: at, color }],
        pick: (x) => change({ probe: Math.min(Math.max(Math.round(x * 100) / 100, 0.02), 0.98) }),
      },
      {
        summary: `Balanced accuracy at balance and width of the window against the margin; at ${show(state.kappa, 3)} they are ${fixed(window.peak)} and ${widthOf(window)}.`,
        x: { min: MARGINS[0], max: MARGINS.at(-1), log: true, label: "margin κ", short: "κ" },
        y: { min: 0, max: 1, label: "the trade-off", ticks: [0, 0.5, 1] },
        rules: [{ x: state.kappa, dash: "3 3" }],
        lines: [
          { name: "BA at balance", x: MARGINS, y: MARGINS.map((_, k) => curve?.[k].peak), color: "text" },
          {
            name: "width W of the window",
            x: MARGINS,
            y: MARGINS.map((_, k) => curve?.[k].width),
            color: "text",
            dash: "6 3",
          },
        ],
        points: [
          { x: state.kappa, y: window.peak, color },
          { x: state.kappa, y: window.width, color },
        ],
        pick: (x) => change({ kappa: Number(x.toPrecision(3)) }),
      },
    ];
  },

  readout({ window, probe }, state) {
    const m = Metrics.of(probe);
    return [
      ["BA at balance", fixed(window.peak, 4)],
      ["window W", widthOf(window)],
      ["from ρ⁻", fixed(window.low, window.rough ? 2 : 4)],
      ["to ρ⁻", fixed(window.high, window.rough ? 2 : 4)],
      [`BA at ${fixed(state.probe, 2)}`, fixed(m.ba(), 4), marginColor(state.kappa)],
      ["threshold moved", fixed(m.bestBa(), 4)],
      ["bias b", fixed(probe.b, 4)],
      ["phase", probe.phase],
    ];
  },

  table({ rho, solutions, ba, best }) {
    return {
      header: ["rho_neg", "ba", "best_ba", "q", "r", "b", "phase"],
      rows: rho.map((r, k) => [
        r,
        ba[k],
        best[k],
        solutions[k].variance,
        solutions[k].r,
        solutions[k].b,
        solutions[k].phase,
      ]),
    };
  },
};
