/**
 * The byte line: what one pass over the model moves, and for how many tokens. Bars are to scale, bytes a token, so that
 * reading's share of a pass is seen beside writing's whole pass.
 */

import { h, setText } from "./dom.js";
import { DASH, bytes, count } from "./format.js";

const NEARLY_SAME = 0.05;

/**
 * The passes that the line speaks of: the largest one that read, and the last known one that wrote.
 * @param {import("./fold.js").Fold} fold
 */
export function passes(fold) {
  const found = { prefill: null, decode: null };
  for (const step of fold.steps.items) {
    if (!step.bytes || step.role === "draft") continue;
    const tokens = step.rows.reduce((sum, row) => sum + row[1], 0);
    const phase = step.rows.some((row) => row[3] === "prefill") ? "prefill" : "decode";
    const pass = { bytes: step.bytes.weights, tokens };
    if (phase === "decode" ? !found.decode : !found.prefill || tokens > found.prefill.tokens) found[phase] = pass;
  }
  return found;
}

export class ByteLine {
  constructor() {
    this.lead = h("p", { class: "bytes-lead" });
    this.rows = { prefill: row("reading"), decode: row("writing") };
    this.el = h("div", { class: "bytes", "data-tip": "derived: bytes of the weights that a pass reads, by model arithmetic. Bars are to scale: bytes of weights a token." },
      this.lead, h("div", { class: "bytes-rows" }, this.rows.prefill.el, this.rows.decode.el));
  }

  layout() {}

  /** @param {any} state @param {any} view */
  update(state, view) {
    if (this.summary !== view.summary) { // made anew when the run has grown, at a pace
      this.summary = view.summary;
      this.#draw(passes(view.fold));
    }
    for (const [phase, row] of Object.entries(this.rows)) row.el.dataset.role = state.phase === phase || state.phase === "done" ? "active" : "ghost";
  }

  #draw(found) {
    const { prefill, decode } = found;
    const same = prefill && decode && Math.abs(prefill.bytes - decode.bytes) <= NEARLY_SAME * decode.bytes;
    setText(this.lead, same || !decode || !prefill ? `One pass reads ${bytes((decode ?? prefill)?.bytes ?? null)} of weights:` : "One pass reads the weights:");
    const most = Math.max(perToken(prefill) ?? 0, perToken(decode) ?? 0);
    for (const [phase, row] of Object.entries(this.rows)) {
      const pass = found[phase];
      const size = same || !pass || !(prefill && decode) ? "" : `${bytes(pass.bytes)} `;
      setText(row.what, pass ? `${size}for ${count(pass.tokens, "token")}` : DASH);
      setText(row.each, pass ? `${bytes(perToken(pass))} a token` : DASH);
      row.bar.style.width = pass && most ? `${(100 * perToken(pass)) / most}%` : "0";
    }
  }
}

const perToken = (pass) => (pass ? pass.bytes / pass.tokens : null);

function row(word) {
  const what = h("span", { class: "bytes-what" });
  const each = h("span", { class: "bytes-each" });
  const bar = h("i", { class: "bytes-bar" });
  return { what, each, bar, el: h("div", { class: `bytes-row ${word}` }, what, h("span", { class: "bytes-track" }, bar), each) };
}
