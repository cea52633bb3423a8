/**
 * Where the figures come from, first of all: LIVE, RECORDED or SIMULATED, on which machine, which model and how fast the
 * clock runs.
 */

import { h, setText } from "./dom.js";
import { machineName, runName } from "./words.js";

/**
 * A growing run is live; whatever is replayed is recorded; a simulation always says so.
 * @param {any} header @param {boolean} replayed
 * @returns {"live" | "recorded" | "simulated" | "remote" | null}
 */
export function sourceOf(header, replayed) {
  if (!header) return null;
  if (header.source === "simulated") return "simulated";
  if (replayed) return "recorded";
  return header.source === "remote" ? "remote" : "live";
}

const WORDS = { live: "LIVE", recorded: "RECORDED", simulated: "SIMULATED", remote: "LIVE, REMOTE" };

export class Badge {
  constructor() {
    this.word = h("strong", { class: "badge-word" });
    this.machine = h("span", { class: "badge-machine" });
    this.speed = h("span", { class: "badge-speed" });
    this.el = h("div", { class: "badge" }, this.word, this.machine, this.speed);
  }

  layout() {}

  update(_state, view) {
    const header = view.fold.header;
    this.word.dataset.source = view.source ?? "";
    setText(this.word, WORDS[view.source] ?? "");
    setText(this.machine, header ? `${machineName(header)} · ${runName(header)}` : "");
    setText(this.speed, view.player.speed === 1 || view.player.follow ? "" : `shown at ${view.player.speed}× speed`);
  }
}
