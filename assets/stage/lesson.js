/**
 * Lesson: what Hero shows, and the words and figures that explain it: phase, regime, intensity, speed, timeline, player.
 */

import { Badge } from "./badge.js";
import { ByteLine } from "./byteline.js";
import { PlayerBar } from "./controls.js";
import { Dials } from "./dials.js";
import { h } from "./dom.js";
import { Figures } from "./figures.js";
import { Headline } from "./headline.js";
import { IntensityScale } from "./intensity.js";
import { Banner } from "./notes.js";
import { PhaseStrip } from "./phasestrip.js";
import { PromptGrid } from "./promptgrid.js";
import { RunButton } from "./runbutton.js";
import { ShortRead } from "./shortread.js";
import { Timeline } from "./timeline.js";
import { TypedText } from "./typed.js";

export function buildLesson({ actions, onRun }) {
  const [badge, banner, headline, strip, run] = [new Badge(), new Banner(), new Headline(), new PhaseStrip(), new RunButton(onRun)];
  const [grid, typed, dials, scale, byteLine] = [new PromptGrid(), new TypedText(), new Dials(), new IntensityScale(), new ByteLine()];
  const figures = new Figures("Figures of this run", ["ttft", "now", "average", "intensity"]);
  const timeline = new Timeline(actions.seek);
  const [bar, shortRead] = [new PlayerBar(actions), new ShortRead()];
  const el = h("div", { class: "lesson" },
    h("header", { class: "top" }, badge.el, run.el),
    banner.el, headline.el, strip.el,
    h("div", { class: "scene" }, h("div", { class: "stream" }, grid.el, typed.el), dials.el),
    bar.el, shortRead.el, timeline.el, figures.el,
    h("div", { class: "pair" }, scale.el, byteLine.el));
  return { el, parts: [badge, banner, run, headline, strip, grid, typed, dials, scale, byteLine, figures, timeline, bar, shortRead] };
}
