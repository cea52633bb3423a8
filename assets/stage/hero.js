/**
 * Hero, the density that opens: one sentence, the prompt and the answer, two dials, one byte line, one button.
 */

import { Badge } from "./badge.js";
import { ByteLine } from "./byteline.js";
import { PlayButton } from "./controls.js";
import { Dials } from "./dials.js";
import { h } from "./dom.js";
import { Headline } from "./headline.js";
import { Banner } from "./notes.js";
import { PromptGrid } from "./promptgrid.js";
import { RunButton } from "./runbutton.js";
import { TypedText } from "./typed.js";

/** @param {any} context actions of the stage */
export function buildHero({ actions, onRun }) {
  const [badge, play, banner, headline] = [new Badge(), new PlayButton(actions), new Banner(), new Headline()];
  const [grid, typed, dials, byteLine, run] = [new PromptGrid(), new TypedText(), new Dials(), new ByteLine(), new RunButton(onRun)];
  const el = h("div", { class: "hero" },
    h("header", { class: "top" }, badge.el, play.el),
    banner.el, headline.el,
    h("div", { class: "scene" }, h("div", { class: "stream" }, grid.el, typed.el), dials.el),
    h("footer", { class: "foot" }, byteLine.el, run.el));
  return { el, parts: [badge, play, banner, headline, grid, typed, dials, byteLine, run] };
}
