/**
 * The player bar. It shows where the clock stands and asks for changes; player.js says what they mean.
 */

import { h, setAttribute, setText } from "./dom.js";
import { clock } from "./format.js";
import { SPEEDS } from "./player.js";

const RANGE = 1000;

/**
 * @typedef {{toggle(): void, token(direction: 1 | -1): void, phase(direction: 1 | -1): void,
 *   idea(direction: 1 | -1): void, step(direction: 1 | -1): void, leave(): void, seek(t: number, done: boolean): void,
 *   speed(value: number): void, nudge(direction: 1 | -1): void, autoPause(on: boolean): void, live(): void}} Actions
 */

/** Icons as paths: no font has them all. */
const ICONS = {
  play: "M7 4 L20 12 L7 20 Z",
  pause: "M6 4 H10 V20 H6 Z M14 4 H18 V20 H14 Z",
  previousPhase: "M5 4 H8 V20 H5 Z M20 4 V20 L9 12 Z",
  nextPhase: "M16 4 H19 V20 H16 Z M4 4 V20 L15 12 Z",
  previousToken: "M16 4 L18 6 L12 12 L18 18 L16 20 L8 12 Z",
  nextToken: "M8 4 L6 6 L12 12 L6 18 L8 20 L16 12 Z",
};

function icon(name) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  return svg;
}

const iconButton = (name, label, keys, onclick) => h("button", { class: "control", type: "button", "aria-label": label, "aria-keyshortcuts": keys, title: `${label} (${keys})`, onclick }, icon(name));

/** Play and pause, alone or in the bar. */
export class PlayButton {
  constructor(actions) {
    this.el = iconButton("play", "Play", "Space", () => actions.toggle());
  }

  layout() {}

  update(_state, view) {
    const playing = view.player.playing;
    if (this.playing === playing) return;
    this.playing = playing;
    this.el.firstChild.firstChild.setAttribute("d", playing ? ICONS.pause : ICONS.play);
    setAttribute(this.el, "aria-label", playing ? "Pause" : "Play");
    setAttribute(this.el, "title", `${playing ? "Pause" : "Play"} (Space)`);
  }
}

export class PlayerBar {
  /** @param {Actions} actions */
  constructor(actions) {
    this.play = new PlayButton(actions);
    this.range = h("input", { class: "seek", type: "range", min: "0", max: String(RANGE), value: "0", step: "1", "aria-label": "Place in the run" });
    this.range.addEventListener("input", () => actions.seek((this.range.value / RANGE) * this.end, false));
    this.range.addEventListener("change", () => actions.seek((this.range.value / RANGE) * this.end, true));
    this.time = h("span", { class: "time" });
    this.speed = h("select", { class: "speed", "aria-label": "Speed", "aria-keyshortcuts": "ArrowUp ArrowDown", onchange: (event) => actions.speed(Number(event.target.value)) },
      ...SPEEDS.map((value) => h("option", { value: String(value) }, `${value}×`)));
    this.auto = h("input", { type: "checkbox", onchange: (event) => actions.autoPause(event.target.checked) });
    this.live = h("button", { class: "live", type: "button", onclick: () => actions.live() }, "Live");
    this.el = h("div", { class: "bar", role: "group", "aria-label": "Player" },
      iconButton("previousPhase", "Previous phase", "[", () => actions.phase(-1)),
      iconButton("previousToken", "Previous token", "ArrowLeft", () => actions.token(-1)),
      this.play.el,
      iconButton("nextToken", "Next token", "ArrowRight", () => actions.token(1)),
      iconButton("nextPhase", "Next phase", "]", () => actions.phase(1)),
      this.range, this.time, this.speed, h("label", { class: "auto" }, this.auto, "stop at phases"), this.live);
  }

  layout() {}

  update(state, view) {
    this.play.update(state, view);
    this.end = view.scene.end;
    const place = String(this.end ? Math.round((RANGE * Math.min(state.t, this.end)) / this.end) : 0);
    if (this.range.value !== place) this.range.value = place;
    const text = `${clock(Math.min(state.t, this.end))} of ${clock(this.end)}`;
    setText(this.time, text);
    if (view.still) setAttribute(this.range, "aria-valuetext", text);
    const speed = String(view.player.speed);
    if (this.speed.value !== speed) this.speed.value = speed;
    this.auto.checked = view.player.autoPause;
    this.live.hidden = view.scene.complete;
    setAttribute(this.live, "aria-pressed", view.player.follow);
  }
}
