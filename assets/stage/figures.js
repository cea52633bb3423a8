/**
 * The figures of a run beside the dials: what each is called, how it is read off the state, and where it comes from.
 * An ordered list of data: a density picks names.
 */

import * as format from "./format.js";
import { Figure, figureList } from "./figure.js";
import { regime } from "./sums.js";
import { derivedProvenance, PHASE_WORDS, regimeWords, timedProvenance } from "./words.js";

const timed = (view) => timedProvenance(view.fold.header);
const NO_PASS = "No pass has been measured at this moment.";
const NO_GAP = "Needs two tokens.";

/** Of the running pass; once the run is over, the averages of reading and of writing side by side. */
function ofPass(state, view, name, words) {
  if (state.phase !== "done") return words(state.step?.held ? state.step[name] : null);
  return format.pair(words(view.averages.prefill[name]), words(view.averages.decode[name]));
}

/** @type {Record<string, {label: string, read: (state: any, view: any) => string, tip: (state: any, view: any) => string, reason: string}>} */
const FIGURES = {
  phase: {
    label: "Phase",
    read: (state) => PHASE_WORDS[state.phase]?.name ?? state.phase,
    tip: (state) => PHASE_WORDS[state.phase]?.says ?? "",
    reason: "",
  },
  ttft: { label: "Time to first token (TTFT)", read: (state) => format.seconds(state.ttft_s), tip: (_state, view) => `${timed(view)}; first token − arrival of the request`, reason: "No token has been written yet." },
  now: { label: "Tokens a second, now", read: (state) => format.rate(state.tokensPerS), tip: (state, view) => (state.phase === "prefill" ? `${timed(view)}; tokens of this pass ÷ its time` : `${timed(view)}; 1 ÷ the time since the token before`), reason: NO_GAP },
  average: { label: "Tokens a second, average", read: (state) => format.rate(state.phase === "prefill" ? state.averages.prefill.promptTokensPerS : state.tpot_s && 1 / state.tpot_s), tip: (state, view) => (state.phase === "prefill" ? `${timed(view)}; prompt tokens ÷ time of their passes` : `${timed(view)}; 1 ÷ TPOT`), reason: NO_GAP },
  tpot: { label: "Time per token (TPOT)", read: (state) => format.seconds(state.tpot_s), tip: (_state, view) => `${timed(view)}; (last − first token) ÷ (tokens − 1)`, reason: NO_GAP },
  itl50: { label: "Gap between tokens, median", read: (_state, view) => format.seconds(view.summary.itl_p50_s), tip: (_state, view) => `${timed(view)}; ITL, 50th percentile, over the whole run`, reason: NO_GAP },
  itl95: { label: "Gap between tokens, 95th pct.", read: (_state, view) => format.seconds(view.summary.itl_p95_s), tip: (_state, view) => `${timed(view)}; ITL, 95th percentile, over the whole run`, reason: NO_GAP },
  prefillRate: { label: "Reading, whole run", read: (_state, view) => format.rate(view.summary.prefill_tok_s), tip: (_state, view) => `${timed(view)}; prompt tokens ÷ time of their passes, repeats left out`, reason: "No prompt pass has been measured." },
  decodeRate: { label: "Writing, whole run", read: (_state, view) => format.rate(view.summary.decode_tok_s), tip: (_state, view) => `${timed(view)}; 1 ÷ TPOT over the whole run`, reason: NO_GAP },
  intensity: { label: "Arithmetic intensity", read: (state, view) => ofPass(state, view, "intensity", format.intensity), tip: (_state, view) => `${derivedProvenance(view.fold.header)}; FLOP ÷ bytes moved by this pass; at rest the averages of reading | writing`, reason: NO_PASS },
  regime: { label: "What holds it up", read: (state, view) => regimeWords(regimeSoFar(state), view.fold.header), tip: (_state, view) => `${derivedProvenance(view.fold.header)}; average of this phase so far: a limit reached at least half way is called the limit`, reason: "A ceiling or a pass is not known." },
  flops: { label: "Arithmetic", read: (state, view) => ofPass(state, view, "flopsPerS", format.flopsPerSecond), tip: (state, view) => `${derivedProvenance(view.fold.header, state.step?.timing)}; FLOP of this pass ÷ its time`, reason: NO_PASS },
  traffic: { label: "Memory traffic", read: (state, view) => ofPass(state, view, "bytesPerS", format.bytesPerSecond), tip: (state, view) => `${derivedProvenance(view.fold.header, state.step?.timing)}; bytes of this pass ÷ its time`, reason: NO_PASS },
  energy: { label: "Energy of the run", read: (_state, view) => (view.summary.energy_j === null ? format.DASH : format.si(view.summary.energy_j, "J")), tip: () => "counter (hardware); difference of the energy counter over the run", reason: "No energy counter was read in this run." },
};

/** Of the phase so far: single passes waver, and a word that flickers says nothing. */
function regimeSoFar(state) {
  const { compute, memory } = state.phase === "prefill" ? state.averages.prefill : state.averages.decode;
  return regime(compute, memory);
}

export class Figures {
  /** @param {string} label @param {string[]} names */
  constructor(label, names) {
    this.figures = names.map((name) => [FIGURES[name], new Figure(name, FIGURES[name].label)]);
    this.el = figureList(label, this.figures.map(([, figure]) => figure));
  }

  layout() {}

  update(state, view) {
    for (const [about, figure] of this.figures) {
      figure.set(about.read(state, view), { tip: about.tip(state, view), reason: about.reason }, view, state.phase);
    }
  }
}
