/**
 * The figures that sum a run up, by the definitions of docs/trace.md: the same as telemetry/summary.py gives for the same
 * trace, which a test demands. None of them is shown under another name.
 */

const ENERGY_METRIC = "energy_j";
const MIN_ENERGY_COVERAGE = 0.9; // of the run's time; below it a part would pass for the whole

/** @param {import("./fold.js").Fold} fold */
export function summarise(fold) {
  const { seq, ends } = fold;
  const tokens = fold.tokenList();
  const nTimed = tokens.timed.length;
  const request = fold.requests.items.find((r) => r.seq === seq) ?? null;
  const averages = { prefill: fold.averages("prefill"), decode: fold.averages("decode") };
  const gaps = tokens.gaps().sort((a, b) => a - b);
  const tpot_s = tokens.meanGap(nTimed);
  return {
    n_prompt_tokens: request?.n_prompt_tokens ?? null,
    n_new_tokens: nTimed ? tokens.timed[nTimed - 1].sum : 0,
    ttft_s: tokens.firstAfter(request?.t ?? null, nTimed),
    tpot_s,
    itl_p50_s: percentile(gaps, 0.5),
    itl_p95_s: percentile(gaps, 0.95),
    prefill_tok_s: averages.prefill.promptTokensPerS,
    decode_tok_s: tpot_s === null ? null : 1 / tpot_s,
    intensity: pick(averages, "intensity"),
    bytes_per_token: meanBytes(fold.sumsAtEnd().decode),
    mfu: pick(averages, "compute"),
    mbu: pick(averages, "memory"),
    denominators: fold.header?.ceilings ?? null,
    energy_j: energy(fold),
    end_reason: (ends.items.find((end) => end.seq === seq) ?? fold.end)?.reason ?? null,
  };
}

const pick = (averages, name) => ({ prefill: averages.prefill[name], decode: averages.decode[name] });

/** The value below which `share` of the rising values lie, linear between neighbours. */
export function percentile(rising, share) {
  if (!rising.length) return null;
  const place = share * (rising.length - 1);
  const low = Math.floor(place);
  const high = Math.min(low + 1, rising.length - 1);
  return rising[low] + (rising[high] - rising[low]) * (place - low);
}

function meanBytes(sums) {
  return Object.fromEntries(Object.entries(sums.parts).map(([part, sum]) => [part, sums.partSteps ? sum / sums.partSteps : null]));
}

/** The energy of all devices from t = 0 to the last token or pass, readings at the edges taken in proportion. */
function energy(fold) {
  const end = Math.max(0, fold.tokens.last?.t ?? 0, fold.steps.last?.t ?? 0);
  const byDevice = new Map();
  for (const { items } of fold.samples.values()) {
    for (const sample of items) {
      if (sample.metric !== ENERGY_METRIC || sample.value === null) continue;
      byDevice.set(sample.device, [...(byDevice.get(sample.device) ?? []), sample]);
    }
  }
  if (end <= 0 || !byDevice.size) return null;
  let total = 0;
  for (const readings of byDevice.values()) {
    const own = readings.filter((r) => r.t1 > r.t0).map((r) => ({ ...r, overlap: Math.max(0, Math.min(r.t1, end) - Math.max(r.t0, 0)) }));
    if (own.reduce((sum, r) => sum + r.overlap, 0) < MIN_ENERGY_COVERAGE * end) return null;
    total += own.reduce((sum, r) => sum + (r.value * r.overlap) / (r.t1 - r.t0), 0);
  }
  return total;
}
