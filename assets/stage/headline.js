/**
 * The one sentence, with this run's own figures. It is built from all that is known of the run; a clause that is not
 * known yet keeps its place.
 */

import { h, setAttribute, setText } from "./dom.js";
import { DASH } from "./format.js";
import { headline, timedProvenance } from "./words.js";

export class Headline {
  constructor() {
    this.reading = h("b", {}, DASH);
    this.writing = h("b", {}, DASH);
    this.contrast = h("span", { class: "headline-contrast" });
    this.clauses = {
      prefill: h("span", { class: "clause reading" }, "Reading: ", this.reading),
      decode: h("span", { class: "clause writing" }, "Writing: ", this.writing),
    };
    this.el = h("p", { class: "headline", "data-tip": "" },
      this.clauses.prefill, " ", this.clauses.decode, " ", this.contrast);
  }

  layout() {}

  update(state, view) {
    const { prefill_tok_s: rate, tpot_s } = view.summary;
    const text = headline(rate ? 1 / rate : null, tpot_s);
    setText(this.reading, text.reading ?? `${DASH} a token.`);
    setText(this.writing, text.writing ?? `${DASH} a token.`);
    setText(this.contrast, text.contrast ?? "");
    setAttribute(this.el, "data-tip", `${timedProvenance(view.fold.header)}. Reading: time of the prompt's passes ÷ prompt tokens. Writing: (last − first token) ÷ (tokens − 1).`);
    for (const [phase, clause] of Object.entries(this.clauses)) clause.dataset.role = state.phase === phase ? "active" : state.phase === "done" ? "both" : "ghost";
  }
}
