/**
 * The phase in words, and what holds it up: the verdict before the figures.
 */

import { h, setText } from "./dom.js";
import { Held } from "./motion.js";
import { regime } from "./sums.js";
import { PHASE_WORDS, derivedProvenance, regimeName, regimeWords } from "./words.js";

export class PhaseStrip {
  constructor() {
    this.name = h("strong", { class: "strip-name" });
    this.says = h("span", { class: "strip-says" });
    this.regime = h("span", { class: "strip-regime", tabindex: "0" });
    this.held = new Held();
    this.el = h("div", { class: "strip" }, this.name, this.says, this.regime);
  }

  layout() {}

  update(state, view) {
    const words = PHASE_WORDS[state.phase] ?? { name: state.phase, says: "" };
    this.el.dataset.phase = state.phase;
    setText(this.name, words.name);
    setText(this.says, words.says);
    setText(this.regime, this.held.take(verdict(state.phase, state, view), state.phase, view.now_ms, view.still));
    if (!this.regime.dataset.tip) this.regime.dataset.tip = `${derivedProvenance(view.fold.header)}. Average of the phase so far: a limit that is reached at least half way is called the limit.`;
  }
}

/**
 * Of the phase so far: single passes waver, and a word that flickers says nothing. At rest, of both.
 * @param {string} phase @param {any} state @param {any} view
 */
export function verdict(phase, state, view) {
  const of = (averages) => regime(averages.compute, averages.memory);
  if (phase === "done") return `Reading was ${regimeName(of(view.averages.prefill))}; writing was ${regimeName(of(view.averages.decode))}.`;
  const averages = phase === "prefill" || phase === "decode" ? state.averages[phase] : null;
  return averages?.steps ? regimeWords(of(averages), view.fold.header) : "";
}
