/**
 * What to do about a prompt that is read too fast to be seen: by a person, who can slow the replay down, and by counters,
 * which answer every tenth of a second or so and need the reading repeated ("stretch").
 */

import { h, setText } from "./dom.js";
import { seconds } from "./format.js";

const SEEN_BY_COUNTERS_S = 0.3;
const UNIT_COUNTERS = new Set(["tensor_active", "dram_active", "sm_active"]);

/** @param {import("./fold.js").Fold} fold @returns {string} empty where there is nothing to say */
export function shortReadWords(fold) {
  const reading_s = fold.sumsAtEnd().prefill.time_s;
  if (reading_s <= 0 || reading_s >= SEEN_BY_COUNTERS_S) return "";
  const took = `Reading took ${seconds(reading_s)}.`;
  const repeats = fold.steps.items.filter((step) => step.repeat).length;
  if (repeats) return `${took} It was stretched: passes repeated for the counters' sake enter no figure.`;
  if (hasUnitCounters(fold.header)) return `${took} Counters answer too slowly to see a phase under 300 ms: stretch it in the settings of the next run, or slow this replay down to 0.02×.`;
  return `${took} At real speed that is over before the eye has seen it: slow the replay down to 0.02×.`;
}

const hasUnitCounters = (header) => (header?.sensors ?? []).some((sensor) => UNIT_COUNTERS.has(sensor.metric) && !sensor.reason);

export class ShortRead {
  constructor() {
    this.el = h("p", { class: "shortread" });
  }

  layout() {}

  update(_state, view) {
    if (this.summary === view.summary) return; // made anew when the run has grown, at a pace
    this.summary = view.summary;
    setText(this.el, shortReadWords(view.fold));
    this.el.hidden = !this.el.textContent;
  }
}
