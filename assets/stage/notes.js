/**
 * Sentences for the person: notes of the run, what the reader could not read, and how the run ended.
 */

import { h, setText } from "./dom.js";
import { ENDS_EARLY } from "./store.js";

const ENDS = { eos: "The model ended its answer.", length: "The run ended at the number of tokens asked for.", stop: "A stop text ended the run.", cancelled: "The run was stopped." };

/** @param {any} end @returns {string | null} */
export function endSentence(end) {
  if (!end) return null;
  return end.reason === "error" ? (end.message ?? "The run ended by an error.") : (ENDS[end.reason] ?? null);
}

export class Notes {
  constructor() {
    this.list = h("ul", {});
    this.el = h("div", { class: "notes panel" }, h("p", { class: "panel-title" }, "Notes"), this.list);
  }

  layout() {}

  update(state, view) {
    const texts = [...state.notes.map((note) => note.text), ...view.readerNotes, endSentence(state.end)].filter(Boolean);
    const key = texts.join("\n");
    if (key === this.shown) return;
    this.shown = key;
    this.list.replaceChildren(...(texts.length ? texts : ["Nothing to note so far."]).map((text) => h("li", {}, text)));
  }
}

/** The sentence that stands over everything when something is wrong or still under way. */
export class Banner {
  constructor() {
    this.el = h("p", { class: "banner", role: "status" });
  }

  layout() {}

  update(state, view) {
    const text = bannerText(state, view);
    setText(this.el, text ?? "");
    this.el.hidden = !text;
  }
}

function bannerText(state, view) {
  if (view.storeState === "failed") return view.problem;
  if (view.storeState === "reconnecting") return "The connection broke. Connecting again; nothing is lost.";
  if (!view.fold.header) return view.run ? "Waiting for the run." : "No run is chosen yet.";
  if (view.storeState === "complete" && !view.fold.end) return ENDS_EARLY;
  return state.end?.reason === "error" ? endSentence(state.end) : null;
}
