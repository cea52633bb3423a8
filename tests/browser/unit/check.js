/** The few words that the unit tests of the stage are written in, and made-up runs to test with. */

const CASES = new Map();

export const test = (name, body) => CASES.set(name, body);

/** Runs one case; rejects with its message. */
export async function runCase(name) {
  if (!CASES.has(name)) throw new Error(`no such case: ${name}`);
  await CASES.get(name)();
}

const show = (value) => JSON.stringify(value);

export function ok(condition, message) {
  if (!condition) throw new Error(message);
}

export function equal(found, wanted, what = "") {
  if (show(found) !== show(wanted)) throw new Error(`${what} found ${show(found)}, wanted ${show(wanted)}`);
}

export function close(found, wanted, what = "", tolerance = 1e-9) {
  if (found === null || wanted === null) return equal(found, wanted, what);
  const scale = Math.max(1e-12, Math.abs(wanted));
  if (!(Math.abs(found - wanted) <= tolerance * scale)) throw new Error(`${what} found ${found}, wanted ${wanted}`);
}

/** A seeded generator of numbers in [0, 1): a failing case can be repeated. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export const HEADER = Object.freeze({
  format: "siliconscope-trace", version: 1, id: "made-up", created: "2026-01-01T00:00:00+00:00", source: "live",
  model: { name: "tiny" }, precision: "fp32", devices: [{ name: "a CPU", kind: "cpu" }],
  ceilings: {
    prefill_compute: { quantity: "flops", value: 400e9, provenance: "measured", label: "measured here" },
    decode_compute: { quantity: "flops", value: 400e9, provenance: "measured", label: "measured here" },
    memory: { quantity: "bytes_per_s", value: 50e9, provenance: "measured", label: "measured here" },
  },
  kv_bytes_per_token: 1000, kv_capacity_tokens: 100,
});

/** A run: `nChunks` passes of 4 prompt tokens in 0.1 s each, then `nNew` tokens, 0.02 s each. */
export function madeUpRun(nChunks = 2, nNew = 5) {
  const events = [];
  const emit = (t, k, fields) => events.push({ n: events.length, t, k, ...fields });
  emit(0, "request", { seq: 0, n_prompt_tokens: nChunks * 4, max_new_tokens: nNew, pieces: null });
  emit(0.001, "phase", { seq: 0, phase: "prefill" });
  let t = 0.001;
  for (let i = 0; i < nChunks; i += 1, t += 0.1) emit(t + 0.1, "step", pass(i, t, t + 0.1, [[0, 4, i * 4, "prefill"]], 30e9));
  emit(t, "phase", { seq: 0, phase: "decode" });
  emit(t, "token", token(0));
  for (let i = 1; i < nNew; i += 1, t += 0.02) {
    emit(t + 0.02, "step", pass(nChunks + i, t, t + 0.02, [[0, 1, nChunks * 4 + i - 1, "decode"]], 0.2e9));
    emit(t + 0.02, "token", token(i));
  }
  emit(t, "phase", { seq: 0, phase: "done" });
  emit(t, "end", { seq: 0, reason: "length", message: null });
  emit(t, "end", { seq: null, reason: "length", message: null });
  return events;
}

function pass(i, t0, t1, rows, flops) {
  return { i, t0, t1, role: "target", rows, flops, bytes: { weights: 500e6, kv_read: 1000 * rows[0][2], kv_write: 1000 * rows[0][1], activations: 5e6 }, timing: "host", repeat: false };
}

const token = (i) => ({ seq: 0, step: null, position: i, text: `w${i} `, count: 1, id: i, prob: 0.5, verdict: null });
