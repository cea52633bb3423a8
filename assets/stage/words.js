/**
 * What things are called: by kind of device, by phase, by regime. Sentences that people read are made here, from figures.
 */

import * as format from "./format.js";

const HIGH_BANDWIDTH_MEMORY = /\b(A100|A800|H100|H200|H800|H20|B100|B200|GB200|GH200|V100|P100|MI\d{2,3}\w*)\b/i;

/** @param {any} header */
export const deviceOf = (header) => header?.devices?.[0] ?? null;

/** "AMD EPYC, 2 cores". @param {any} header */
export function machineName(header) {
  const devices = header?.devices ?? [];
  if (!devices.length) return "a machine that is not named";
  return devices.length > 1 ? `${devices.length} × ${devices[0].name}` : devices[0].name;
}

/** What ran: model and precision, and whatever about the run makes its figures other than the usual ones. @param {any} header */
export function runName(header) {
  const path = header.engine?.path;
  const asides = [path && path !== "native" ? path : null, header.engine?.cold ? "first run after loading" : null];
  return [header.model?.name ?? "a model", header.precision, ...asides].filter(Boolean).join(", ");
}

/** Names of the two limits on this device. @param {any} header */
export function limitNames(header) {
  const device = deviceOf(header);
  if (device?.kind === "cpu") return { compute: "Compute", memory: "Memory bus" };
  if (device?.kind === "cuda") {
    return { compute: "Tensor cores", memory: HIGH_BANDWIDTH_MEMORY.test(device.name) ? "Memory (HBM)" : "Memory (VRAM)" };
  }
  return { compute: "Compute", memory: "Memory traffic" };
}

export const PHASE_WORDS = Object.freeze({
  idle: { name: "Idle", says: "Nothing runs." },
  waiting: { name: "Waiting", says: "The prompt waits for its turn." },
  prefill: { name: "Reading", says: "Prefill: many tokens go through the model in one pass (matrix × matrix)." },
  decode: { name: "Writing", says: "Decode: every token needs a pass of its own (matrix × vector)." },
  evicted: { name: "Set aside", says: "The sequence gave its place to another and will be read again." },
  done: { name: "Done", says: "The run is over." },
});

/** What is the limit, and what that means on this machine. @param {{name: string | null, share: number | null}} regime @param {any} header */
export function regimeWords(regime, header) {
  if (regime.name === "compute") return "compute-bound: arithmetic is the limit";
  if (regime.name === "memory") return "memory-bound: it waits for bytes, not for arithmetic";
  if (regime.name === "overhead") return `overhead-bound: ${overheadWords(header)}; ${format.percent(regime.share)} of the time neither limit is reached`;
  return regimeName(regime);
}

/** Python is the one to blame only where it launches each operation of a GPU by itself. */
function overheadWords(header) {
  if (deviceOf(header)?.kind !== "cuda") return "the time goes between the operations, not to memory";
  return header.engine?.options?.cuda_graph === false ? "the GPU waits for Python, not for memory" : "the GPU waits between its operations, not for memory";
}

/** The regime's name alone. @param {{name: string | null}} regime */
export function regimeName(regime) {
  if (regime.name) return `${regime.name}-bound`;
  return `${format.DASH} (a limit of this machine is not known)`;
}

/** The three clauses of the headline, in one unit; a clause is null until its figure is known. */
export function headline(reading_s, writing_s) {
  const known = Number.isFinite(reading_s) && Number.isFinite(writing_s) && reading_s > 0;
  const clause = (value) => (Number.isFinite(value) ? `${format.secondsLike(value, writing_s ?? reading_s)} a token.` : null);
  return {
    reading: clause(reading_s),
    writing: clause(writing_s),
    contrast: known ? contrast(writing_s / reading_s) : null,
  };
}

function contrast(ratio) {
  if (ratio >= 1.05) return `${format.times(ratio)} slower, on the same chip.`;
  if (ratio <= 0.95) return `${format.times(1 / ratio)} faster, on the same chip.`;
  return "The same speed, on the same chip.";
}

/** The sentence read out when a phase begins. @param {any} state @param {any} averages of both phases, all known */
export function announcement(state, averages) {
  const shares = (of) => `compute ${format.percent(of.compute)}, memory ${format.percent(of.memory)}`;
  if (state.phase === "prefill") return `Reading the prompt, ${format.count(state.prompt.total, "token")}.`;
  if (state.phase === "decode") return `Reading is done: ${shares(averages.prefill)}. Writing begins, one token a pass.`;
  if (state.phase === "done") return `The run is over. Reading: ${shares(averages.prefill)}. Writing: ${shares(averages.decode)}.`;
  return PHASE_WORDS[state.phase]?.says ?? "";
}

/** Where the figures of passes come from. @param {any} header */
export function derivedProvenance(header, timing) {
  if (header?.source === "simulated") return "simulated";
  return `derived: model arithmetic ÷ time measured on the ${timing === "device" ? "device" : "host"}`;
}

/** Where times come from. @param {any} header */
export const timedProvenance = (header) => (header?.source === "simulated" ? "simulated" : "measured: times of events on the run's own clock");

const PROVENANCE = {
  counter: "counter, as the hardware or the system gives it",
  derived: "derived (model arithmetic ÷ measured time)",
  driver_time_fraction: "driver busy time, not a share of the peak",
  simulated: "simulated",
  unavailable: "not available here",
};
export const provenanceWords = (name) => PROVENANCE[name] ?? String(name ?? "not stated");

/** "of 478 GFLOP/s, measured, fp32 matrix product", or why there is none. */
export function denominatorWords(peak) {
  if (!peak) return "the peak of this machine is not known";
  const unit = peak.quantity === "flops" ? "FLOP/s" : "B/s";
  return `of ${format.si(peak.value, unit)}, ${peak.label}`;
}
