/**
 * Presenter mode: one idea a screen, in type that reads from the back of a room. The clock stops by itself where a phase
 * begins, and the screen says what the space bar will let happen.
 *
 * Which idea is on follows from where the clock stands; nothing is remembered, so stepping back is seeking back.
 */

import { Badge } from "./badge.js";
import { PlayButton } from "./controls.js";
import { Dials } from "./dials.js";
import { h, setText } from "./dom.js";
import { count } from "./format.js";
import { Banner } from "./notes.js";
import { verdict } from "./phasestrip.js";
import { PromptGrid } from "./promptgrid.js";
import { RunButton } from "./runbutton.js";
import { TypedText } from "./typed.js";
import { headline } from "./words.js";

/** @typedef {"prompt" | "reading" | "read" | "writing" | "written"} Idea */

/** @param {any} state the fold's @param {import("./player.js").Player} player @returns {Idea} */
export function ideaAt(state, player) {
  const atItsStart = !player.playing && state.t <= (state.phaseSince ?? 0);
  if (state.phase === "done") return "written";
  if (state.phase === "decode") return atItsStart ? "read" : "writing";
  if (state.phase === "idle" || state.phase === "waiting") return "prompt";
  return atItsStart ? "prompt" : "reading";
}

/** What the space bar does next. @param {Idea} idea @param {boolean} playing */
export function cueFor(idea, playing) {
  if (playing) return "";
  return { prompt: "Press space to let it read", read: "Press space to let it write", written: "Press space to begin again" }[idea] ?? "Press space to go on";
}

const TITLES = {
  prompt: (state) => (state.prompt.total === null ? "A prompt waits to be read." : `${count(state.prompt.total, "token")} to read.`),
  reading: () => "Reading: many tokens in one pass.",
  read: (_state, words) => (words.reading ? `Read: ${words.reading}` : "The prompt is read."),
  writing: () => "Writing: one token a pass.",
  written: (_state, words) => (words.writing ? `Written: ${words.writing}` : "The run is over."),
};

class Idea {
  constructor(actions) {
    this.title = h("p", { class: "idea-title" });
    this.says = h("p", { class: "idea-says" });
    this.cue = h("button", { class: "cue", type: "button", onclick: () => actions.toggle() });
  }

  layout() {}

  update(state, view) {
    const { prefill_tok_s: rate, tpot_s } = view.summary;
    const words = headline(rate ? 1 / rate : null, tpot_s);
    const idea = ideaAt(state, view.player);
    this.root.dataset.idea = idea;
    setText(this.title, TITLES[idea](state, words));
    setText(this.says, idea === "written" ? (words.contrast ?? "") : idea === "prompt" ? "" : verdict(idea === "read" ? "prefill" : state.phase, state, view));
    setText(this.cue, cueFor(idea, view.player.playing));
    this.cue.style.visibility = view.player.playing ? "hidden" : "visible"; // its room stays
  }
}

/** @param {any} context actions of the stage */
export function buildPresent({ actions, onRun }) {
  const [badge, play, banner, idea, run] = [new Badge(), new PlayButton(actions), new Banner(), new Idea(actions), new RunButton(onRun)];
  const [grid, typed, dials] = [new PromptGrid(), new TypedText(), new Dials()];
  const leave = h("button", { class: "leave", type: "button", "aria-keyshortcuts": "Escape", onclick: () => actions.leave() }, "Leave");
  const el = h("div", { class: "present" },
    h("header", { class: "top" }, badge.el, run.el, play.el, leave),
    banner.el, idea.title, idea.says,
    h("div", { class: "scene" }, h("div", { class: "stream" }, grid.el, typed.el), dials.el),
    idea.cue);
  idea.root = el;
  return { el, parts: [badge, play, banner, run, idea, grid, typed, dials] };
}
