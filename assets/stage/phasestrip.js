/**
 * The phase in words, and what holds it up: the verdict before the figures.
 */

import { h, setText } from "./dom.js";
import { Held } from "./motion.js";
import { regime } from "./sums.js";
import { PHASE_WORDS, derivedProvenance, regimeWords } from "./words.js";

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
    setText(this.regime, this.held.take(verdict(state, view), state.phase, view.now_ms, view.still));
    if (!this.regime.dataset.tip) this.regime.dataset.tip = `${derivedProvenance(view.fold.header)}. Average of the phase so far: a limit that is reached at least half way is called the limit.`;
  }
}

/** Of the phase so far: single passes waver, and a word that flickers says nothing. At rest, of both. */
function verdict(state, view) {
  const word = (of) => regimeWords(regime(of.compute, of.memory));
  if (state.phase === "done") return `Reading was ${word(view.averages.prefill)}; writing was ${word(view.averages.decode)}.`;
  const of = state.phase === "prefill" || state.phase === "decode" ? state.averages[state.phase] : null;
  return of?.steps ? word(of) : "";
}
