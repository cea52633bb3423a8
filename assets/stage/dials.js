/**
 * The pair of dials, and what each is told: the figures of the running pass, the averages of the other phase, and what
 * the shares are shares of. At rest both phases stand side by side at their averages.
 */

import { Dial } from "./dial.js";
import { h } from "./dom.js";
import { bytesPerSecond, flopsPerSecond, pair, percent } from "./format.js";
import { denominatorWords, derivedProvenance, limitNames } from "./words.js";

const NO_PASS = "no pass has been measured yet";
const ABSOLUTE = { compute: ["flopsPerS", flopsPerSecond], memory: ["bytesPerS", bytesPerSecond] };

export class Dials {
  constructor() {
    this.compute = new Dial("compute");
    this.memory = new Dial("memory");
    this.el = h("div", { class: "dials" }, this.compute.el, this.memory.el);
  }

  layout(theme, plotly) {
    this.compute.layout(theme, plotly);
    this.memory.layout(theme, plotly);
  }

  update(state, view) {
    this.compute.update(dialInput("compute", state, view), view);
    this.memory.update(dialInput("memory", state, view), view);
  }
}

/** @param {"compute" | "memory"} kind @returns {import("./dial.js").DialInput} */
export function dialInput(kind, state, view) {
  const header = view.fold.header;
  const ceilings = header?.ceilings ?? {};
  const step = state.phase !== "done" && state.step?.held ? state.step : null;
  const active = activePhase(state, step);
  const figures = Object.fromEntries(["prefill", "decode"].map((phase) => [phase, step?.phase === phase ? step : view.averages[phase]]));
  const of = ofWords(kind, active, ceilings);
  const name = limitNames(header)[kind] + (kind === "memory" && ceilings.from_cache ? ", from cache" : "");
  const shares = { prefill: figures.prefill[kind], decode: figures.decode[kind] };
  return {
    active, shares, name, of: withoutKernel(of),
    absolute: absoluteWords(kind, active, figures),
    reason: reasonWords(kind, active, figures, of),
    tip: `${name}: ${of}. ${derivedProvenance(header, step?.timing)}. Reading ${percent(view.averages.prefill[kind])}, writing ${percent(view.averages.decode[kind])} on average over the run.`,
  };
}

/** The kernel that set a measured ceiling stands in brackets; the dial's face has no room for it, its tip has. */
function withoutKernel(words) { return words.replace(/ \([^)]*\)/g, ""); }

function activePhase(state, step) {
  if (state.phase === "done") return "both";
  if (step) return step.phase;
  return state.phase === "prefill" || state.phase === "decode" ? state.phase : null;
}

function ofWords(kind, active, ceilings) {
  if (kind === "memory") return denominatorWords(ceilings.memory);
  const { prefill_compute: prefill, decode_compute: decode } = ceilings;
  if (active === "both" && prefill && decode && prefill.value !== decode.value) {
    return `of ${flopsPerSecond(prefill.value)} reading, ${flopsPerSecond(decode.value)} writing, ${decode.label}`;
  }
  return denominatorWords(active === "prefill" ? prefill : decode ?? prefill);
}

function absoluteWords(kind, active, figures) {
  const [name, words] = ABSOLUTE[kind];
  if (active === "both") return pair(words(figures.prefill[name]), words(figures.decode[name]));
  return words(figures[active ?? "decode"][name]);
}

function reasonWords(kind, active, figures, of) {
  const figure = figures[active === "prefill" ? "prefill" : "decode"];
  return (figure[ABSOLUTE[kind][0]] ?? null) === null ? NO_PASS : of;
}
