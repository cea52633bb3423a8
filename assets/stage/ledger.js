/**
 * The byte ledger of the current pass: which part of the traffic is weights, KV cache, activations; to scale, and as
 * figures. Below it the fill of the KV cache.
 */

import { h, setAttribute, setText } from "./dom.js";
import { DASH, bytes, count, percent } from "./format.js";
import { PARTS } from "./sums.js";
import { Held } from "./motion.js";

const NAMES = { weights: "weights", kv_read: "KV cache read", kv_write: "KV cache written", activations: "activations" };

export class Ledger {
  constructor() {
    this.title = h("p", { class: "panel-title" });
    this.slices = Object.fromEntries(PARTS.map((part) => [part, h("i", { class: `slice ${part}` })]));
    this.values = Object.fromEntries(PARTS.map((part) => [part, h("td", {}, DASH)]));
    this.each = h("td", {}, DASH);
    this.total = h("td", {}, DASH);
    this.kvText = h("p", { class: "kv-text" });
    this.kvBar = h("i", { class: "kv-fill" });
    this.held = new Held();
    const rows = PARTS.map((part) => h("tr", {}, h("th", { scope: "row" }, h("i", { class: `swatch ${part}` }), NAMES[part]), this.values[part]));
    this.el = h("div", { class: "ledger panel", tabindex: "0" }, this.title,
      h("div", { class: "slices", "aria-hidden": "true" }, ...PARTS.map((part) => this.slices[part])),
      h("table", {}, h("tbody", {}, ...rows, h("tr", { class: "sum" }, h("th", { scope: "row" }, "one pass moves"), this.total), h("tr", { class: "sum" }, h("th", { scope: "row" }, "for each token"), this.each))),
      this.kvText, h("div", { class: "kv-track" }, this.kvBar));
    setAttribute(this.el, "data-tip", "derived: bytes that must move between memory and cores, by model arithmetic. Bar to scale.");
  }

  layout() {}

  update(state, view) {
    const step = this.held.take(state.step, state.phase, view.now_ms, view.still);
    this.#drawKv(state.kv);
    if (step === this.drawn) return;
    this.drawn = step;
    const what = step ? `${step.phase === "prefill" ? "reading" : "writing"} ${count(step.tokens, "token")}` : "no pass yet";
    setText(this.title, `Bytes of this pass: ${what}`);
    for (const part of PARTS) {
      const value = step?.parts?.[part] ?? null;
      setText(this.values[part], bytes(value));
      this.slices[part].style.flexGrow = String(value && step.bytes ? value / step.bytes : 0);
    }
    setText(this.total, bytes(step?.bytes ?? null));
    setText(this.each, bytes(step?.bytes ? step.bytes / step.tokens : null));
  }

  #drawKv(kv) {
    const of = kv.capacity ? ` of ${count(kv.capacity, "token")} (${percent(kv.share)})` : "";
    setText(this.kvText, `KV cache: ${kv.tokens.toLocaleString("en-GB")}${of}, ${bytes(kv.bytes)}`);
    this.kvBar.style.width = `${100 * Math.min(kv.share ?? 0, 1)}%`;
  }
}
