/**
 * The hinge loss as the saddle point sees it: three Gaussian expectations and their derivatives. The twin of
 * rbal/losses/_hinge.py for what the explorers need.
 *
 * For a class with label y, u0 ~ N(μ, q) moves to u = prox_{xℓ}(u0), and f = (u - u0)/x is the force. Each function
 * below writes (E[f], E[f²], E[-f']), then their derivatives in μ, in q and in x.
 * @module
 */
import { GL_NODES, GL_WEIGHTS, Z_MAX, cdf, interval, millsDerivatives, millsExcess, pdf } from "./gauss.js";

/** The loss, the hard constraint u ≥ κ it becomes where it can vanish (SAT), and the surface in between. */
export const HINGE = 0;
export const INEQUALITY = 1;
export const INEQUALITY_EDGE = 2;

/** The twelve expectations of a loss, into out. */
export function expectations(loss, kappa, c, x, mu, q, out) {
  if (loss === HINGE) hinge(kappa, c, x, mu, q, out);
  else if (loss === INEQUALITY) inequality(kappa, x, mu, q, out);
  else ramp(kappa, mu, q, out);
}

/** E[f] and E[-f'] alone, into out[0] and out[1]: what the search for the bias needs. */
export function pull(loss, kappa, c, x, mu, q, out) {
  if (loss === HINGE) {
    const s = Math.sqrt(q);
    const t1 = (kappa - c * x - mu) / s;
    bandMoments(t1, (kappa - mu) / s);
    out[0] = c * (cdf(t1) + band[1]);
    out[1] = band[0] / x;
  } else if (loss === INEQUALITY) {
    slopes(kappa, x, mu, q, out);
  } else {
    positivePart(kappa, mu, q);
    out[0] = part[1];
    out[1] = part[0];
  }
}

/** E[ℓ(u)], the weighted loss on a training sample. */
export function meanLoss(kappa, c, x, mu, q) {
  const s = Math.sqrt(q);
  const t = (kappa - c * x - mu) / s;
  return c * s * (pdf(t) + t * cdf(t));
}

/** ℓ = c (κ - u)₊, eq. (GpmUNSAT): f = c below κ - cx and falls linearly to 0 at κ. */
function hinge(kappa, c, x, mu, q, out) {
  const s = Math.sqrt(q);
  const t1 = (kappa - c * x - mu) / s;
  const t2 = (kappa - mu) / s;
  const below = cdf(t1);
  bandMoments(t1, t2);
  const m1 = band[1];
  const m2 = band[2];
  const p1 = pdf(t1) / s;
  const p2 = pdf(t2) / s;
  const g = band[0] / x;
  const cx = c / x;
  out[0] = c * (below + m1);
  out[1] = c * c * (below + m2);
  out[2] = g;
  out[3] = -g;
  out[4] = -2 * cx * m1;
  out[5] = (p1 - p2) / x;
  out[6] = (0.5 * (p2 - p1)) / x;
  out[7] = g / x - cx * p1;
  out[8] = (0.5 * (t1 * p1 - t2 * p2)) / (s * x);
  out[9] = -cx * m1;
  out[10] = -2 * c * cx * m2;
  out[11] = cx * p1 - g / x;
}

const band = new Float64Array(3);

/** E[sᵏ; t1 < z < t2] for k = 0, 1, 2, where s falls from 1 at t1 to 0 at t2 and z is standard normal. */
function bandMoments(t1, t2) {
  const width = t2 - t1;
  if (width < 1) {
    // here the closed form would subtract nearly equal numbers
    let m0 = 0;
    let m1 = 0;
    let m2 = 0;
    for (let k = 0; k < 12; k++) {
      const s = GL_NODES[k];
      const p = width * GL_WEIGHTS[k] * pdf(t2 - width * s);
      m0 += p;
      m1 += p * s;
      m2 += p * s * s;
    }
    band[0] = m0;
    band[1] = m1;
    band[2] = m2;
    return;
  }
  const p1 = pdf(t1);
  const p2 = pdf(t2);
  const m0 = interval(t1, t2);
  band[0] = m0;
  band[1] = (t2 * m0 + p2 - p1) / width;
  band[2] = ((t2 * t2 + 1) * m0 + t2 * p2 - (2 * t2 - t1) * p1) / (width * width);
}

/** f = (κ - u0)₊: what is left of the hinge on the SAT/UNSAT surface, where x → ∞ and only x f stays finite. */
function ramp(kappa, mu, q, out) {
  positivePart(kappa, mu, q);
  const s = Math.sqrt(q);
  const t = (kappa - mu) / s;
  const p = pdf(t) / s;
  out[0] = part[1];
  out[1] = part[2];
  out[2] = part[0];
  out[3] = -part[0];
  out[4] = -2 * part[1];
  out[5] = -p;
  out[6] = 0.5 * p;
  out[7] = part[0];
  out[8] = (-0.5 * t * p) / s;
  out[9] = -part[1];
  out[10] = -2 * part[2];
  out[11] = -part[0];
}

const part = new Float64Array(3);

/** E[(κ - u0)₊ᵏ] for k = 0, 1, 2. */
function positivePart(kappa, mu, q) {
  const s = Math.sqrt(q);
  const t = (kappa - mu) / s;
  const i0 = cdf(t);
  part[0] = i0;
  if (t < -3) {
    // φ + tΦ would lose its digits: write it with the Mills ratio
    const i1 = i0 * millsExcess(-t);
    part[1] = s * i1;
    part[2] = q * (i0 + t * i1);
    return;
  }
  const p = pdf(t);
  part[1] = s * (p + t * i0);
  part[2] = q * ((1 + t * t) * i0 + t * p);
}

// ---- SAT phase: integrals over u0 of the inverse Mills ratio and its derivatives.

const STRIDE = 5; // node, then h and its first three derivatives, at each of the twelve nodes of a panel
const REACH = 7.5; // deviations of u0 on either side: beyond lies 1e-13 of it
const panels = new Map(); // level, then index

/** Nodes on [index, index + 1]·2^level with h and its derivatives: the same for every problem, so kept. */
function panel(level, index) {
  let row = panels.get(level);
  if (row === undefined) panels.set(level, (row = new Map()));
  let table = row.get(index);
  if (table === undefined) {
    table = new Float64Array(12 * STRIDE);
    for (let k = 0; k < 12; k++) {
      table[k * STRIDE] = 2 ** level * (index + GL_NODES[k]);
      millsDerivatives(table[k * STRIDE], table, k * STRIDE + 1);
    }
    if (row.size > 5000) row.clear();
    row.set(index, table);
  }
  return table;
}

/**
 * Panels over t = (κ - u0)/√w that follow the Gaussian in u0 and the corner of h at t = 0, which differ in width when
 * w ≪ q or w ≫ q. Their edges are multiples of powers of two, so that panels come back.
 */
function forEachPanel(kappa, w, mu, q, visit) {
  const sw = Math.sqrt(w);
  const centre = (kappa - mu) / sw;
  const spread = Math.sqrt(q) / sw;
  const end = centre + REACH * spread;
  const widest = 3 * spread;
  // below 0, h is like a Gaussian itself: the product of the two is one around `tail`, no wider than 1
  const tail = Math.min(centre / (1 + spread * spread), 0);
  let level = Math.min(1, Math.floor(Math.log2(widest)));
  let width = 2 ** level;
  let index = Math.floor(Math.max(centre - REACH * spread, tail - Z_MAX, -38) / width); // h underflows below -38
  while (index * width < end) {
    while (index % 2 === 0 && 2 * width <= Math.min(0.4 * index * width, widest)) {
      width *= 2;
      index /= 2;
      level += 1;
    }
    visit(panel(level, index), width, centre, spread);
    index += 1;
  }
}

const sums = new Float64Array(9);

function addAll(table, width, centre, spread) {
  for (let k = 0; k < 12; k++) {
    const i = k * STRIDE;
    const weight = (width * GL_WEIGHTS[k] * pdf((centre - table[i]) / spread)) / spread;
    const h = table[i + 1];
    const h1 = table[i + 2];
    const h2 = table[i + 3];
    sums[0] += weight * h;
    sums[1] += weight * h1;
    sums[2] += weight * h2;
    sums[3] += weight * table[i + 4];
    sums[4] += weight * h * h;
    sums[5] += weight * h * h1;
    sums[6] += weight * h * h2;
    sums[7] += weight * h * h * h1;
    sums[8] += weight * h1 * h1;
  }
}

function addSlopes(table, width, centre, spread) {
  for (let k = 0; k < 12; k++) {
    const i = k * STRIDE;
    const weight = (width * GL_WEIGHTS[k] * pdf((centre - table[i]) / spread)) / spread;
    sums[0] += weight * table[i + 1];
    sums[1] += weight * table[i + 2];
  }
}

/** E[f] and E[-f'] in the SAT phase. */
function slopes(kappa, w, mu, q, out) {
  sums.fill(0);
  forEachPanel(kappa, w, mu, q, addSlopes);
  out[0] = sums[0] / Math.sqrt(w);
  out[1] = sums[1] / w;
}

/** SAT phase, eq. (GpmSAT): f = h(t)/√w with t = (κ - u0)/√w. Here ∂f/∂w = f f' + f''/2. */
function inequality(kappa, w, mu, q, out) {
  sums.fill(0);
  forEachPanel(kappa, w, mu, q, addAll);
  const [a1, a2, a3, a4, b1, b2, b3, c2, d2] = sums;
  const sw = Math.sqrt(w);
  const w15 = w * sw;
  const w2 = w * w;
  out[0] = a1 / sw;
  out[1] = b1 / w;
  out[2] = a2 / w;
  out[3] = -a2 / w;
  out[4] = (-2 * b2) / w15;
  out[5] = -a3 / w15;
  out[6] = (0.5 * a3) / w15;
  out[7] = (d2 + b3) / w2;
  out[8] = (0.5 * a4) / w2;
  out[9] = (0.5 * a3 - b2) / w15;
  out[10] = (b3 - 2 * c2) / w2;
  out[11] = (0.5 * a4 - d2 - b3) / w2;
}
