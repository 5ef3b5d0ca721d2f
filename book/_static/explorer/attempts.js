/**
 * Where to start, which phase to solve, what to do when Newton fails. The twin of rbal/saddle/_newton.py and _fallback.py for
 * the hinge loss.
 * @module
 */
import { HINGE, INEQUALITY, INEQUALITY_EDGE } from "./losses.js";
import { B, EDGE, LOG_Q, LOG_X, R, RIDGE, SAT, UNSAT, ZETA, dataSide, found, newton } from "./kernels.js";

/** A phase beside UNSAT and SAT: no weights lower the loss. */
export const COLLAPSED = 2;

const X_LIMIT = 1e7; // x/√q beyond this: go and see whether the data are separable
const FAR = 1e9; // a margin that every sample misses
const HUGE = 1e300;
const MAX_ITER = 200;

const dot = (...arrays) => {
  let sum = 0;
  for (let i = 0; i < arrays[0].length; i++) {
    let term = arrays[0][i];
    for (let k = 1; k < arrays.length; k++) term *= arrays[k][i];
    sum += term;
  }
  return sum;
};

export const withMode = (p, mode, loss, kappa, ridge) => ({ ...p, mode, loss, kappa, ridge });

/** Weights half aligned with the shift, on the sphere. */
function sphereStart(problem, spectrum, y) {
  const q = (problem.norm * dot(spectrum.g, spectrum.lam)) / dot(spectrum.g);
  y[LOG_Q] = Math.log(q);
  y[LOG_X] = problem.mode === EDGE ? 0 : 0.5 * Math.log(q);
  y[R] = 0.5 * Math.sqrt(problem.norm * dot(spectrum.s));
  y[B] = 0;
  y[ZETA] = 1;
}

/** Weights as under a strong ridge, where every sample pulls with the force it has at 0; capped at the margin. */
function ridgeStart(problem, spectrum, ridge, y) {
  const { lam, g, s } = spectrum;
  let qHat = 0;
  let rHat = 0;
  for (let k = 0; k < 2; k++) {
    const f = problem.kappa[k] >= 0 ? problem.weight[k] : 0;
    qHat += problem.alpha[k] * problem.width[k] * f * f;
    rHat += 0.5 * problem.alpha[k] * f;
  }
  const top = 1 + Math.max(problem.kappa[0], problem.kappa[1]);
  const q = Math.min((qHat * dot(g, lam, lam) + rHat ** 2 * dot(s, lam)) / ridge ** 2, top ** 2);
  y[LOG_Q] = Math.log(q);
  y[LOG_X] = Math.log(Math.min(dot(g, lam) / ridge, Math.sqrt(q)));
  y[R] = Math.min((rHat * dot(s)) / ridge, top);
  y[B] = 0;
  y[ZETA] = ridge;
}

/** The SAT/UNSAT surface: y[LOG_X] becomes the critical margin. Extreme sizes are reached from milder ones. */
export function solveEdge(problem, spectrum, tol, y, warm = false) {
  const p = withMode(problem, EDGE, INEQUALITY_EDGE, [0, 0], 0);
  if (warm && newton(p, spectrum, tol, 30, HUGE, y) <= tol) return found.residual;
  sphereStart(p, spectrum, y);
  let residual = newton(p, spectrum, tol, MAX_ITER, HUGE, y);
  if (residual <= tol) return residual;
  let solved = 0;
  let factor = 4;
  let share = 1e-3 / Math.max(p.alpha[0], p.alpha[1]);
  const good = y.slice();
  for (let n = 0; n < 200; n++) {
    const mild = { ...p, alpha: [p.alpha[0] * share, p.alpha[1] * share] };
    if (solved > 0) y.set(good);
    else sphereStart(mild, spectrum, y);
    residual = newton(mild, spectrum, tol, MAX_ITER, HUGE, y);
    if (residual <= tol) {
      if (share === 1) break;
      solved = share;
      factor = Math.min(factor * factor, 100);
      good.set(y);
    } else if (solved === 0 || factor < 1.01) {
      break;
    } else {
      factor = Math.sqrt(factor);
    }
    share = Math.min(1, solved * factor);
  }
  return residual;
}

/** Typical weights without loss. Where the volume of solutions is thin, start from its closing. */
function solveSat(problem, spectrum, tol, y) {
  const p = withMode(problem, SAT, INEQUALITY, problem.kappa, 0);
  for (let k = 0; k < 4; k++) {
    // half aligned with the shift, fully, not at all, just enough for the margin
    sphereStart(p, spectrum, y);
    if (k === 1) y[R] *= 2;
    else if (k > 1) y[R] = Math.min(y[R], 2 * (k - 2) * p.kappa[0]);
    if (newton(p, spectrum, tol, 40, HUGE, y) <= tol) return found.residual;
  }
  const edge = new Float64Array(5);
  if (!(solveEdge(problem, spectrum, tol, edge) <= tol && edge[LOG_X] > problem.kappa[0])) return Infinity;
  return leaveEdge(p, spectrum, tol, edge, y);
}

/** Follow the SAT phase from its surface, where the volume of solutions closes, down to the margin asked for. */
function leaveEdge(problem, spectrum, tol, edge, y) {
  const gap = edge[LOG_X] - problem.kappa[0];
  const good = edge.slice();
  let share = 0.02;
  let solved = 0;
  let factor = 2;
  let residual = Infinity;
  for (let n = 0; n < 100; n++) {
    const kappa = edge[LOG_X] - share * gap;
    const p = { ...problem, kappa: [kappa, kappa] };
    for (let k = 0; k < (solved > 0 ? 1 : 6); k++) {
      // the spread near the surface is of the order of the distance
      y.set(good);
      if (solved === 0) y[LOG_X] = Math.min(2 * Math.log(share * gap), edge[LOG_Q]) - 2 * k;
      residual = newton(p, spectrum, tol, 40, HUGE, y);
      if (residual <= tol) break;
    }
    if (residual <= tol) {
      if (share === 1) break;
      good.set(y);
      solved = share;
      factor = Math.min(factor * factor, 4);
    } else if (solved === 0 || factor < 1.01) {
      break;
    } else {
      factor = Math.sqrt(factor);
    }
    share = Math.min(1, solved * factor);
  }
  return residual;
}

/** Label of the class that pulls harder at the bias; 0 when they are even. */
export function major(problem) {
  const { alpha, weight, fitBias } = problem;
  const gap = alpha[0] * weight[0] - alpha[1] * weight[1];
  if (Math.abs(gap) <= 4e-16 * alpha[0] * weight[0] || !fitBias) return 0;
  return gap > 0 ? 1 : -1;
}

/**
 * The same problem with the bias counted from the margin of the major class. There it sits at large margins, and b
 * alone, near ±κ, would lose the digits that matter.
 */
function fromMajor(problem) {
  const y = major(problem);
  const { kappa } = problem;
  return { ...problem, kappa: [kappa[0] - y * kappa[0], kappa[1] + y * kappa[0]] };
}

/** The sphere with some loss left. An infinite residual after a growing x tells of the SAT phase. */
function solveUnsat(problem, spectrum, tol, y, warm) {
  if (!warm) sphereStart(problem, spectrum, y);
  let residual = newton(problem, spectrum, tol, MAX_ITER, X_LIMIT, y);
  if (residual <= tol || residual === Infinity) return residual;
  if (residual > 1e-6) {
    // far off: begin among the directions of least variance instead
    sphereStart(problem, spectrum, y);
    y[LOG_Q] = Math.log(0.9 * problem.norm * spectrum.lam[0] + 0.1 * Math.exp(y[LOG_Q]));
    y[R] = Math.min(y[R], 2 * problem.kappa[0]);
    residual = newton(problem, spectrum, tol, MAX_ITER, X_LIMIT, y);
    if (residual <= tol || residual === Infinity) return residual;
  }
  const side = major(problem);
  if (side !== 0) {
    y[B] += side * problem.kappa[0];
    residual = newton(fromMajor(problem), spectrum, tol, MAX_ITER, X_LIMIT, y);
    y[B] -= side * problem.kappa[0];
  }
  return residual;
}

/**
 * Direction of the weights of a hinge SVM as they vanish: major class at its margin, minor class far below. The
 * problem is then homogeneous, and its multiplier k̂ on the unit sphere decides: positive, and weights of size k̂/λ̃ lower
 * the loss under a strong ridge λ̃; not positive, and no weights do, under any ridge.
 */
export function solveVanishing(problem, spectrum, tol, y, warm = false) {
  const side = major(problem);
  if (side === 0) return evenVanishing(problem, spectrum, y);
  const p = { ...withMode(problem, UNSAT, HINGE, side > 0 ? [0, FAR] : [FAR, 0], 0), norm: 1 };
  const visible = { ...spectrum, gNull: 0, shift: spectrum.lam[0] };
  if (!(warm && newton(p, visible, tol, 30, HUGE, y) <= tol)) {
    sphereStart(p, visible, y);
    newton(p, visible, tol, MAX_ITER, HUGE, y);
  }
  const hats = new Float64Array(24);
  dataSide(p, 0, Math.exp(y[LOG_Q]), Math.exp(y[LOG_X]), y[R], y[B], hats);
  return { residual: found.residual, kHat: y[ZETA] - hats[0] * visible.shift };
}

/** The same where the classes pull evenly: every sample lies below its margin and all is explicit. */
function evenVanishing(problem, spectrum, y) {
  const { lam, g, s } = spectrum;
  let qHat = 0;
  let rHat = 0;
  for (let k = 0; k < 2; k++) {
    qHat += problem.alpha[k] * problem.width[k] * problem.weight[k] ** 2;
    rHat += 0.5 * problem.alpha[k] * problem.weight[k];
  }
  const kHat = Math.sqrt(qHat * dot(g, lam) + rHat ** 2 * dot(s));
  y[LOG_Q] = Math.log((qHat * dot(g, lam, lam) + rHat ** 2 * dot(s, lam)) / kHat ** 2);
  y[LOG_X] = Math.log(dot(g, lam) / kHat);
  y[R] = (rHat * dot(s)) / kHat;
  y[B] = 0;
  y[ZETA] = kHat;
  return { residual: 0, kHat };
}

/** Make the weights so many times as large, and the bias with them. */
function scaleWeights(y, scale) {
  y[LOG_Q] += 2 * Math.log(scale);
  y[LOG_X] += Math.log(scale);
  y[R] *= scale;
  y[B] *= scale;
}

/** SVM: from a guess; else follow the solution from a strong ridge, where it is known. Returns residual and phase. */
function solveRidge(problem, spectrum, tol, y, warm) {
  const { ridge } = problem;
  if (!warm) ridgeStart(problem, spectrum, ridge, y);
  let residual = newton(problem, spectrum, tol, MAX_ITER, HUGE, y);
  if (residual <= tol && y[LOG_Q] > -40) return { residual, phase: UNSAT };
  const { lam, g, s } = spectrum;
  const force = problem.alpha[0] * problem.weight[0] + problem.alpha[1] * problem.weight[1];
  const strong = Math.max(ridge, 1e3 * force * (1 + dot(g, lam) + dot(s) + dot(g, lam, lam)));
  const side = major(problem);
  const vanishing = solveVanishing(problem, spectrum, tol, y);
  if (vanishing.residual > tol) return { residual: vanishing.residual, phase: UNSAT };
  if (vanishing.kHat <= 0) return { residual: 0, phase: COLLAPSED };
  scaleWeights(y, vanishing.kHat / strong);
  const kappa = side !== 0 ? fromMajor(problem).kappa : problem.kappa;
  const good = y.slice();
  let level = strong;
  let solved = strong;
  let factor = 0.1;
  let power = 1; // small weights are in inverse proportion to the ridge, and little but the ridge fixes their size
  for (let n = 0; n < 300; n++) {
    y.set(good);
    scaleWeights(y, (solved / level) ** power);
    residual = newton(withMode(problem, RIDGE, HINGE, kappa, level), spectrum, tol, MAX_ITER, HUGE, y);
    if (residual <= tol) {
      if (level === ridge) {
        y[B] -= side * problem.kappa[0];
        break;
      }
      if (level < solved) power = Math.min(Math.max((0.5 * (y[LOG_Q] - good[LOG_Q])) / Math.log(solved / level), 0), 1);
      good.set(y);
      solved = level;
      factor = Math.max(factor * factor, 0.01);
    } else if (factor > 0.99 || level === strong) {
      break;
    } else {
      factor = Math.sqrt(factor);
    }
    level = Math.max(ridge, solved * factor);
  }
  return { residual, phase: UNSAT };
}

/** Whether, on the sphere, all weight goes to directions that neither vary nor separate (there must be some). */
function collapses(problem, spectrum, tol) {
  if (!(spectrum.gNull > 0 && spectrum.lam[0] > 0)) return false;
  const y = new Float64Array(5);
  if (problem.kappa[0] > 0) {
    const { residual, kHat } = solveVanishing(problem, spectrum, tol, y);
    return residual <= tol && kHat <= 0;
  }
  // at κ = 0 the scale of the visible weights is free, and any loss they leave is saved by none
  const visible = { ...spectrum, gNull: 0, shift: spectrum.lam[0] };
  return solveUnsat(problem, visible, tol, y, false) <= tol;
}

/** One saddle point; y is the start when warmPhase ≥ 0, and the solution after. Returns residual and phase. */
export function solvePhase(problem, spectrum, tol, y, warmPhase) {
  if (problem.mode === RIDGE) return solveRidge(problem, spectrum, tol, y, warmPhase === UNSAT);
  if (warmPhase === SAT) {
    const p = withMode(problem, SAT, INEQUALITY, problem.kappa, 0);
    if (newton(p, spectrum, tol, 8, HUGE, y) <= tol) return { residual: found.residual, phase: SAT };
  }
  let residual = solveUnsat(problem, spectrum, tol, y, warmPhase === UNSAT);
  if (warmPhase === UNSAT && !(residual <= tol)) residual = solveUnsat(problem, spectrum, tol, y, false);
  // with weights that no sample sees, a solution may shrink until rounding takes it for one
  const vanished = spectrum.gNull > 0 && y[LOG_Q] < -40;
  if (residual <= tol && !vanished) return { residual, phase: UNSAT };
  if (collapses(problem, spectrum, tol)) return { residual: 0, phase: COLLAPSED };
  const trial = new Float64Array(5);
  residual = solveSat(problem, spectrum, tol, trial);
  if (residual <= tol) {
    y.set(trial);
    return { residual, phase: SAT };
  }
  // neither: x has run away from a solution, so begin with a small one
  sphereStart(problem, spectrum, y);
  y[LOG_X] -= 5;
  return { residual: solveUnsat(problem, spectrum, tol, y, true), phase: UNSAT };
}
