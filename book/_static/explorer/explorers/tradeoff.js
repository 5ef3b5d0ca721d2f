/**
 * Balanced accuracy against the share of negatives, and the window in which a margin pays.
 * @module
 */
import { Metrics } from "../metrics.js";
import { fixed, show } from "../plot.js";
import { solve, sweep } from "../solver.js";
import { tradeoffWindow } from "../strategies.js";
import { dataChoice, geomspace, kappaSlider, linspace, momentsOf, satBands, sizeSlider, stretchSlider, valuesOf } from "./shared.js";

const N = 200;
const MARGINS = 17; // of the curve of windows
const point = (state, rho, kappa = state.kappa) => ({
  alphaPos: state.alpha_pos, alphaNeg: (state.alpha_pos * rho) / (1 - rho), kappa,
});

const windows = { key: "" };

/** Peak and width over the margins: they do not depend on the margin at hand, so that its slider need not wait. */
function windowCurve(moments, state) {
  const key = [state.data, state.stretch, state.alpha_pos].join(" ");
  if (windows.key !== key) {
    const kappa = geomspace(0.05, 20, MARGINS);
    windows.curve = kappa.map((k) => ({ kappa: k, ...tradeoffWindow(moments, state.alpha_pos, { kappa: k }, 12) }));
    windows.key = key;
  }
  return windows.curve;
}

/** @type {import("../explorer.js").Definition} */
export default {
  name: "tradeoff",
  title: "Balance against performance",
  intro:
    "A larger margin makes a better classifier of balanced data and a worse one of all others. The shaded window is where more than half of what was learnt at balance is kept. Drag the margin and watch the peak rise and the window close.",
  controls: (moments) => [
    dataChoice(moments),
    kappaSlider(),
    sizeSlider("alpha_pos", "positives per feature", "α⁺"),
    stretchSlider(),
    { key: "probe", kind: "range", label: "read off at", symbol: "ρ⁻", min: 0.02, max: 0.98, step: 0.01, format: (v) => fixed(v, 2) },
  ],
  plots: [{ name: "curves", height: 270 }, { name: "windows", height: 150 }],

  compute(state, data) {
    const moments = momentsOf(data, state);
    const rho = linspace(0.02, 0.98, N);
    const run = (kappa) => sweep(moments, rho.map((r) => point(state, r, kappa)));
    const solutions = run(state.kappa);
    const others = [state.kappa / 2, state.kappa * 2].map((kappa) => ({
      kappa, ba: valuesOf(run(kappa), (s) => Metrics.of(s).ba()),
    }));
    return {
      rho, solutions, others,
      ba: valuesOf(solutions, (s) => Metrics.of(s).ba()),
      best: valuesOf(solutions, (s) => Metrics.of(s).bestBa()),
      window: tradeoffWindow(moments, state.alpha_pos, { kappa: state.kappa }),
      curve: windowCurve(moments, state),
      probe: solve(moments, point(state, state.probe)),
    };
  },

  draw({ rho, solutions, others, ba, best, window, curve, probe }, state, change) {
    const kappaName = (k) => `κ = ${show(k, 3)}`;
    const at = Metrics.of(probe).ba();
    return [
      {
        summary: `Balanced accuracy against the share of negatives at margin ${state.kappa}: ${fixed(window.peak)} at balance, more than half of that gain from ${fixed(window.low)} to ${fixed(window.high)}.`,
        x: { min: 0, max: 1, label: "share of negatives in the training set, ρ⁻", short: "ρ⁻" },
        y: { min: 0.48, max: Math.min(1, Math.ceil((Math.max(...best.filter(Number.isFinite), window.peak) + 0.02) * 20) / 20), label: "balanced accuracy" },
        bands: [{ from: window.low, to: window.high, color: "vermillion", opacity: 0.13, name: "window" }, ...satBands(rho, solutions)],
        rules: [{ y: 0.5 }, { x: state.probe, dash: "3 3" }],
        lines: [
          { name: kappaName(others[0].kappa), x: rho, y: others[0].ba, color: "sky", width: 1.5 },
          { name: kappaName(others[1].kappa), x: rho, y: others[1].ba, color: "purple", width: 1.5 },
          { name: "moved threshold", x: rho, y: best, color: "vermillion", width: 1.5, dash: "1.5 4" },
          { name: kappaName(state.kappa), x: rho, y: ba, color: "vermillion", width: 2.6 },
        ],
        points: [{ x: state.probe, y: at, color: "vermillion" }],
        pick: (x) => change({ probe: Math.min(Math.max(Math.round(x * 100) / 100, 0.02), 0.98) }),
      },
      {
        summary: `Balanced accuracy at balance against the width of the window, for margins from 0.05 to 20; at margin ${state.kappa} the width is ${show(window.width, 3)}.`,
        x: { min: 1e-4, max: 1, log: true, label: "width W of the window", ticks: [1e-4, 1e-3, 0.01, 0.1, 1], format: (v) => String(v), short: "W" },
        y: { min: 0.48, max: Math.min(1, Math.ceil((Math.max(...curve.map((c) => c.peak), window.peak) + 0.02) * 20) / 20), label: "balanced accuracy at balance, along the margins κ" },
        lines: [{ x: curve.map((c) => Math.max(c.width, 1e-9)), y: curve.map((c) => c.peak), color: "muted", width: 2 }],
        points: [{ x: Math.max(window.width, 1e-4), y: window.peak, color: "vermillion", shape: "ring" }],
        hover: (x, y) => {
          const c = curve.reduce((a, b) => (Math.abs(Math.log(b.width / x)) + 4 * Math.abs(b.peak - y) < Math.abs(Math.log(a.width / x)) + 4 * Math.abs(a.peak - y) ? b : a));
          const dots = c.width >= 1e-4 ? [{ x: c.width, y: c.peak, color: "muted" }] : [];
          return { title: kappaName(c.kappa), rows: [["BA at balance", fixed(c.peak)], ["W", show(c.width, 3)]], dots };
        },
      },
    ];
  },

  readout({ window, probe }, state) {
    const m = Metrics.of(probe);
    return [
      ["BA at balance", fixed(window.peak, 4)], ["window W", show(window.width, 4)],
      ["from ρ⁻", fixed(window.low, 4)], ["to ρ⁻", fixed(window.high, 4)],
      [`BA at ρ⁻ = ${fixed(state.probe, 2)}`, fixed(m.ba(), 4), "vermillion"], ["with the threshold moved", fixed(m.bestBa(), 4)],
      ["b there", fixed(probe.b, 4)], ["phase", probe.phase],
    ];
  },

  table({ rho, solutions, ba, best }) {
    return {
      header: ["rho_neg", "ba", "best_ba", "q", "r", "b", "phase"],
      rows: rho.map((r, k) => [r, ba[k], best[k], solutions[k].variance, solutions[k].r, solutions[k].b, solutions[k].phase]),
    };
  },
};
