/**
 * Balanced accuracy against the share of negatives, and the window in which a margin pays.
 * @module
 */
import { Metrics } from "../metrics.js";
import { fixed, show } from "../plot.js";
import { solve, sweep, walker } from "../solver.js";
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
const MARGINS = geomspace(0.05, 20, 25);
const point = (state, rho, kappa = state.kappa) => ({
  alphaPos: state.alpha_pos,
  alphaNeg: (state.alpha_pos * rho) / (1 - rho),
  kappa,
});

// Peak and width over all margins, for the last data and size: they do not depend on the margin at hand.
let windows = { key: "", curve: [] };
/** Width of a window, or the bound below which it is not resolved. */
const widthOf = (window) => (window.resolved ? show(window.width, 4) : `< ${show(NARROWEST)}`);
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

  compute(state, data) {
    const moments = momentsOf(data, state);
    const rho = linspace(0.02, 0.98, N);
    const solutions = sweep(
      moments,
      rho.map((r) => point(state, r)),
    );
    return {
      rho,
      solutions,
      others: [state.kappa / 2, state.kappa * 2].map((kappa) => ({ kappa, ba: [] })),
      ba: valuesOf(solutions, (s) => Metrics.of(s).ba()),
      best: valuesOf(solutions, (s) => Metrics.of(s).bestBa()),
      window: tradeoffWindow(moments, state.alpha_pos, { kappa: state.kappa }),
      curve: windows.key === keyOf(state) ? windows.curve : null,
      probe: solve(moments, point(state, state.probe)),
    };
  },

  /** Curves of other margins and the curve of windows take some thousand solutions: they follow when the sliders rest. */
  *refine(result, state, data) {
    const moments = momentsOf(data, state);
    const others = [];
    for (const { kappa } of result.others) {
      const next = walker(moments, undefined, true);
      const ba = [];
      for (const r of result.rho) {
        ba.push(valuesOf([next(point(state, r, kappa))], (s) => Metrics.of(s).ba())[0]);
        if (ba.length % 20 === 0) yield;
      }
      others.push({ kappa, ba });
    }
    const curve = [];
    if (!result.curve) {
      for (const kappa of MARGINS) {
        curve.push(tradeoffWindow(moments, state.alpha_pos, { kappa }, 0.01));
        yield;
      }
      windows = { key: keyOf(state), curve };
      result.curve = curve;
    }
    result.others = others;
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
      ["from ρ⁻", fixed(window.low, 4)],
      ["to ρ⁻", fixed(window.high, 4)],
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
