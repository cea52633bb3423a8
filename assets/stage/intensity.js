/**
 * Arithmetic intensity on a log scale, with the ridge: left of it memory is the limit, right of it compute.
 * The ridge is the compute ceiling over the memory ceiling of this run.
 */

import { h, setText } from "./dom.js";
import { DASH, digits } from "./format.js";

const FROM = 0.1;
const TO = 10_000;
const TICKS = [0.1, 1, 10, 100, 1000, 10_000];

export class IntensityScale {
  constructor() {
    this.ridge = h("i", { class: "scale-ridge" });
    this.ridgeText = h("span", { class: "scale-ridge-text" });
    this.marks = { prefill: mark("reading"), decode: mark("writing") };
    this.axis = h("div", { class: "scale-axis" }, ...TICKS.map((tick) => {
      const label = h("span", { class: "scale-tick" }, tick.toLocaleString("en-GB"));
      label.style.left = place(tick);
      return label;
    }), this.ridge, this.ridgeText, this.marks.prefill.el, this.marks.decode.el);
    this.el = h("div", { class: "scale", tabindex: "0", "data-tip": "derived: FLOP ÷ bytes moved, by model arithmetic. Left of the ridge a pass waits for memory, right of it for compute." },
      h("p", { class: "panel-title" }, "Arithmetic intensity, FLOP/byte"), this.axis);
  }

  layout() {}

  update(state, view) {
    const { prefill_compute: compute, memory } = view.fold.header?.ceilings ?? {};
    const ridge = compute && memory ? compute.value / memory.value : null;
    this.ridge.style.left = ridge ? place(ridge) : "-99px";
    this.ridgeText.style.left = ridge ? place(ridge) : "50%";
    setText(this.ridgeText, ridge ? `ridge ${digits(ridge, 2)}` : `ridge ${DASH} (a limit of this machine is not known)`);
    for (const [phase, { el, text }] of Object.entries(this.marks)) {
      const running = state.phase === phase && state.step?.held ? state.step.intensity : null;
      const value = running ?? view.averages[phase].intensity;
      el.dataset.role = state.phase === phase || state.phase === "done" ? "active" : "ghost";
      el.style.visibility = value === null ? "hidden" : "visible";
      el.style.left = value === null ? "0" : place(value);
      if (value !== null) setText(text, digits(value, 2));
    }
  }
}

function place(value) {
  const share = Math.log(value / FROM) / Math.log(TO / FROM);
  return `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;
}

function mark(word) {
  const text = h("b", {});
  return { text, el: h("span", { class: `scale-mark ${word}` }, text, h("small", {}, word)) };
}
