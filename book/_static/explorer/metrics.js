/**
 * Metrics of a linear classifier from its order parameters. On a test sample of class y the score is Gaussian,
 * Δʸ ~ N(y r/2 - b, q), and every metric is a function of (q, r, b), of the threshold γ and, for some, of the share φ⁺ of
 * positives in the test set. The twin of rbal/metrics.
 * @module
 */
import { cdf, logCdf, pdf } from "./gauss.js";
import { RECORDS } from "./records.js";

// Trapezoid in the score of a positive, as in Python: the error is exp(-2π²/(s h)) for classes s deviations apart.
const STEP = 1 / 32;
const NODES = Float64Array.from({ length: 609 }, (_, k) => -9.5 + k * STEP);
const WEIGHTS = NODES.map((z) => STEP * pdf(z));
const LOG_BELOW = NODES.map((z) => logCdf(-z));

/** φ Φ(z) / (φ Φ(z) + φ' Φ(z')) from logarithms, also where both tails underflow. */
const shareOf = (logOf, logOther, logOdds) => 1 / (1 + Math.exp(logOther - logOf + logOdds));

/** Metrics of the scores N(y r/2 - b, q); q = 0 is a classifier that gives every sample one score. */
export class Metrics {
  /**
   * @param {number} q variance of a test score
   * @param {number} r distance between the class means
   * @param {number} b bias
   */
  constructor(q, r, b) {
    this.q = q;
    this.r = r;
    this.b = b;
  }

  /** Of a {@link import("./solver.js").Solution}. */
  static of(solution) {
    return new Metrics(solution.variance, solution.r, solution.b);
  }

  /** The same scores with the threshold moved midway between the classes. */
  get centred() {
    return new Metrics(this.q, this.r, 0);
  }

  /** How many deviations the mean of a class lies above the threshold; a tie counts half. */
  z(label, threshold = 0) {
    const gap = label * 0.5 * this.r - this.b - threshold;
    return this.q === 0 && gap === 0 ? 0 : gap / Math.sqrt(this.q);
  }

  density(delta, label) {
    const s = Math.sqrt(this.q);
    return pdf((delta - label * 0.5 * this.r + this.b) / s) / s;
  }

  tpr(threshold = 0) {
    return cdf(this.z(1, threshold));
  }

  fpr(threshold = 0) {
    return cdf(this.z(-1, threshold));
  }

  tnr(threshold = 0) {
    return cdf(-this.z(-1, threshold));
  }

  fnr(threshold = 0) {
    return cdf(-this.z(1, threshold));
  }

  /** Balanced accuracy. */
  ba(threshold = 0) {
    return 0.5 * (this.tpr(threshold) + this.tnr(threshold));
  }

  acc(phi, threshold = 0) {
    return phi * this.tpr(threshold) + (1 - phi) * this.tnr(threshold);
  }

  /** Positive predictive value (precision). */
  ppv(phi, threshold = 0) {
    if (phi === 0 || phi === 1) return phi;
    const of = this.z(1, threshold);
    const other = this.z(-1, threshold);
    // both infinitely far out: the class with the higher mean wins by far
    const gap = of === -Infinity && other === -Infinity ? (this.r === 0 ? 0 : -Infinity * Math.sign(this.r)) : NaN;
    const ratio = Number.isNaN(gap) ? logCdf(other) - logCdf(of) : gap;
    return 1 / (1 + Math.exp(ratio + Math.log((1 - phi) / phi)));
  }

  f1(phi, threshold = 0) {
    const tpr = this.tpr(threshold);
    const total = phi * (1 + tpr) + (1 - phi) * this.fpr(threshold);
    return total === 0 ? 0 : (2 * phi * tpr) / total;
  }

  /** Matthews correlation coefficient; 0 where one class is never predicted. */
  mcc(phi, threshold = 0) {
    const [tpr, fpr, tnr, fnr] = [this.tpr(threshold), this.fpr(threshold), this.tnr(threshold), this.fnr(threshold)];
    const spread = (phi * tpr + (1 - phi) * fpr) * (phi * fnr + (1 - phi) * tnr);
    return spread === 0 ? 0 : (Math.sqrt(phi * (1 - phi)) * (tpr * tnr - fpr * fnr)) / Math.sqrt(spread);
  }

  /** Area under the ROC curve, P(Δ⁺ > Δ⁻). */
  auc() {
    return this.q === 0 && this.r === 0 ? 0.5 : cdf(this.r / Math.sqrt(2 * this.q));
  }

  /** Area under the precision–recall curve: over scores μ₊ + √q z, TPR = H(z), FPR = H(z + s), weight |dTPR| = Dz. */
  auprc(phi) {
    if (phi === 0 || phi === 1 || (this.q === 0 && this.r === 0)) return phi;
    const s = this.r / Math.sqrt(this.q);
    const logOdds = Math.log((1 - phi) / phi);
    let area = 0;
    for (let k = 0; k < NODES.length; k++) area += WEIGHTS[k] * shareOf(LOG_BELOW[k], logCdf(-NODES[k] - s), logOdds);
    return area;
  }

  /** Threshold of the highest balanced accuracy: midway between the class means. */
  bestThreshold() {
    return this.r < 0 ? Infinity : -this.b;
  }

  /** Balanced accuracy there. */
  bestBa() {
    return Math.max(this.ba(-this.b), 0.5);
  }

  /** n thresholds from above both classes to below them. */
  thresholds(n = 201) {
    const reach = 0.5 * Math.abs(this.r) + 8.5 * Math.sqrt(this.q);
    return Array.from({ length: n }, (_, k) => -this.b + reach * (1 - (2 * k) / (n - 1)));
  }
}

/** Metrics of scores N(±r/2 - b, q±), whose variance differs between the classes. The threshold is its own variable. */
export class WidthMetrics {
  /**
   * @param {number} qPos variance of the score of a positive
   * @param {number} qNeg and of a negative
   * @param {number} r distance between the class means
   * @param {number} b bias
   */
  constructor(qPos, qNeg, r, b) {
    Object.assign(this, { qPos, qNeg, r, b });
  }

  /** Of a {@link import("./solver.js").Solution} of a {@link import("./solver.js").Point}. */
  static of({ variance, r, b }, { widthPos = 1, widthNeg = 1 }) {
    return new WidthMetrics(widthPos * variance, widthNeg * variance, r, b);
  }

  /** How many deviations the mean of a class lies above the threshold; a tie counts half. */
  z(label, threshold = 0) {
    const q = label > 0 ? this.qPos : this.qNeg;
    const gap = label * 0.5 * this.r - this.b - threshold;
    return q === 0 && gap === 0 ? 0 : gap / Math.sqrt(q);
  }

  density(delta, label) {
    return pdf(this.z(label, delta)) / Math.sqrt(label > 0 ? this.qPos : this.qNeg);
  }

  tpr(threshold = 0) {
    return cdf(this.z(1, threshold));
  }

  tnr(threshold = 0) {
    return cdf(-this.z(-1, threshold));
  }

  /** Balanced accuracy. */
  ba(threshold = 0) {
    return 0.5 * (this.tpr(threshold) + this.tnr(threshold));
  }

  /** Area under the ROC curve, P(Δ⁺ > Δ⁻). */
  auc() {
    return this.qPos + this.qNeg === 0 && this.r === 0 ? 0.5 : cdf(this.r / Math.sqrt(this.qPos + this.qNeg));
  }

  /** Midway between the class means. */
  midway() {
    return -this.b;
  }

  /**
   * Threshold of the highest balanced accuracy: where the density of the positives rises above that of the negatives. With
   * u counted from midway, a u² - 2h u + c = 0; one of its roots is where they cross in that sense, and there always is one.
   */
  bestThreshold() {
    const { qPos, qNeg, r, b } = this;
    if (!(qPos > 0 && qNeg > 0)) return Infinity;
    if (qPos === qNeg) return r < 0 ? Infinity : -b;
    const a = 1 / qPos - 1 / qNeg;
    const h = 0.5 * r * (1 / qPos + 1 / qNeg);
    const log = Math.log(qPos / qNeg);
    const c = 0.25 * r * r * a + log;
    const root = Math.sqrt((r * r) / (qPos * qNeg) - a * log); // no digits are lost: -a·log is never negative
    return (h >= 0 ? c / (h + root) : (h - root) / a) - b;
  }

  /** Balanced accuracy there. */
  bestBa() {
    const best = this.bestThreshold();
    return best === Infinity ? 0.5 : this.ba(best);
  }
}

const OF = {
  ba: (m) => m.ba(),
  acc: (m, phi) => m.acc(phi),
  auc: (m) => m.auc(),
  auprc: (m, phi) => m.auprc(phi),
  f1: (m, phi) => m.f1(phi),
  mcc: (m, phi) => m.mcc(phi),
  tpr: (m) => m.tpr(),
  tnr: (m) => m.tnr(),
  ppv: (m, phi) => m.ppv(phi),
};

/** Metrics by key: name, title, and sign, -1 where less is better, as in Python; and the value, of test share phi. */
export const METRICS = Object.fromEntries(Object.entries(OF).map(([key, of]) => [key, { ...RECORDS[key], of }]));
