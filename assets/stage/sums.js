/**
 * Running sums over forward passes, one set a phase: what averages, shares and intensities are taken from.
 *
 * A figure that one pass lacks is left out together with that pass's time, so an unknown never counts as zero.
 * Repeated passes ("stretch prefill") move the dials and enter no sum.
 */

/** @typedef {"prefill" | "decode"} StepPhase */
/** @typedef {{steps: number, promptTokens: number, time_s: number, flops: number, flopsTime_s: number, bytes: number,
 *   bytesTime_s: number, bothFlops: number, bothBytes: number, parts: Record<string, number>, partSteps: number}} PhaseSums */
/** @typedef {Record<StepPhase, PhaseSums>} Sums */

export const PARTS = Object.freeze(["weights", "kv_read", "kv_write", "activations"]);

/** @returns {Sums} */
export const emptySums = () => ({ prefill: emptyPhase(), decode: emptyPhase() });

function emptyPhase() {
  return {
    steps: 0, promptTokens: 0, time_s: 0, flops: 0, flopsTime_s: 0, bytes: 0, bytesTime_s: 0, bothFlops: 0, bothBytes: 0,
    parts: { weights: 0, kv_read: 0, kv_write: 0, activations: 0 }, partSteps: 0,
  };
}

/** Prefill when any of its rows reads prompt tokens. @returns {StepPhase} */
export const phaseOf = (step) => (step.rows.some((row) => row[3] === "prefill") ? "prefill" : "decode");

export const tokensOf = (step) => step.rows.reduce((sum, row) => sum + row[1], 0);

/** Bytes of a pass over all parts, null when unknown. */
export const bytesOf = (step) => (step.bytes === null ? null : PARTS.reduce((sum, part) => sum + step.bytes[part], 0));

/** Prompt tokens of one sequence (null: of all) that a pass reads. */
const promptTokensOf = (step, seq) => step.rows.reduce((sum, row) => sum + (row[3] === "prefill" && (seq === null || row[0] === seq) ? row[1] : 0), 0);

/**
 * New sums with one more pass, if it holds a row of the sequence.
 * @param {Sums} sums @param {any} step @param {number | null} seq null: every pass counts @returns {Sums}
 */
export function withStep(sums, step, seq) {
  if (step.repeat || (seq !== null && !step.rows.some((row) => row[0] === seq))) return sums;
  const phase = phaseOf(step);
  const next = { ...sums[phase], parts: sums[phase].parts };
  const time = step.t1 - step.t0;
  const bytes = bytesOf(step);
  next.steps += 1;
  next.promptTokens += promptTokensOf(step, seq);
  next.time_s += time;
  if (step.flops !== null) { next.flops += step.flops; next.flopsTime_s += time; }
  if (bytes !== null) {
    next.bytes += bytes;
    next.bytesTime_s += time;
    next.partSteps += 1;
    next.parts = Object.fromEntries(PARTS.map((part) => [part, next.parts[part] + step.bytes[part]]));
  }
  if (step.flops !== null && bytes !== null) { next.bothFlops += step.flops; next.bothBytes += bytes; }
  return { ...sums, [phase]: next };
}

const MIN_INTERVAL_S = 1e-7; // what a trace resolves
export const measurable = (interval_s) => interval_s >= MIN_INTERVAL_S;

/** A quotient, null where it has no meaning. */
export const ratio = (above, below) => (Number.isFinite(above) && Number.isFinite(below) && below > 0 ? above / below : null);

/** An amount a second, null without an interval to measure it over. */
export const perSecond = (amount, interval_s) => (measurable(interval_s) ? ratio(amount, interval_s) : null);

/**
 * The averages of one phase against the run's ceilings; null where unknown.
 * @param {Sums} sums @param {StepPhase} phase @param {any} ceilings the header's
 */
export function phaseAverages(sums, phase, ceilings) {
  const of = sums[phase];
  const flopsPerS = perSecond(of.flops, of.flopsTime_s);
  const bytesPerS = perSecond(of.bytes, of.bytesTime_s);
  return {
    flopsPerS,
    bytesPerS,
    compute: shareOf(flopsPerS, computeCeiling(ceilings, phase)),
    memory: shareOf(bytesPerS, ceilings?.memory),
    intensity: ratio(of.bothFlops, of.bothBytes),
    promptTokensPerS: of.promptTokens ? perSecond(of.promptTokens, of.time_s) : null,
    steps: of.steps,
  };
}

/** @param {any} ceilings @param {StepPhase} phase */
export const computeCeiling = (ceilings, phase) => ceilings?.[phase === "prefill" ? "prefill_compute" : "decode_compute"] ?? null;

/** @param {number | null} value @param {{value: number} | null | undefined} ceiling */
export const shareOf = (value, ceiling) => (value === null || !ceiling ? null : ratio(value, ceiling.value));

const BOUND_SHARE = 0.5; // as in sim/roofline.py: a limit reached at least half way is called the limit

/**
 * What held a pass up. For overhead the share is the part of the time in which neither limit is reached.
 * @param {number | null} compute @param {number | null} memory
 * @returns {{name: "compute" | "memory" | "overhead" | null, share: number | null}}
 */
export function regime(compute, memory) {
  if (compute === null || memory === null) return { name: null, share: null };
  const larger = Math.max(compute, memory);
  if (larger < BOUND_SHARE) return { name: "overhead", share: 1 - larger };
  return { name: compute >= memory ? "compute" : "memory", share: larger };
}
