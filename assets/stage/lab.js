/**
 * Lab: everything that the trace says. Every figure tells where it comes from, on hover and on focus.
 */

import { Badge } from "./badge.js";
import { PlayerBar } from "./controls.js";
import { Dials } from "./dials.js";
import { h } from "./dom.js";
import { Figures } from "./figures.js";
import { IntensityScale } from "./intensity.js";
import { Ledger } from "./ledger.js";
import { Banner, Notes } from "./notes.js";
import { PhaseStrip } from "./phasestrip.js";
import { PromptGrid } from "./promptgrid.js";
import { Roofline } from "./roofline.js";
import { RunButton } from "./runbutton.js";
import { Sensors } from "./sensors.js";
import { ShortRead } from "./shortread.js";
import { Timeline } from "./timeline.js";
import { TypedText } from "./typed.js";

const NOW = ["intensity", "flops", "traffic", "now"];
const RUN = ["ttft", "tpot", "itl50", "itl95", "prefillRate", "decodeRate", "average", "energy"];

export function buildLab({ actions, onRun }) {
  const [badge, banner, strip, run] = [new Badge(), new Banner(), new PhaseStrip(), new RunButton(onRun)];
  const [grid, typed, dials, scale] = [new PromptGrid(), new TypedText(), new Dials(), new IntensityScale()];
  const [roofline, ledger, sensors, notes] = [new Roofline(), new Ledger(), new Sensors(), new Notes()];
  const [now, whole] = [new Figures("Figures of this pass", NOW), new Figures("Figures of the run", RUN)];
  const timeline = new Timeline(actions.seek);
  const [bar, shortRead] = [new PlayerBar(actions), new ShortRead()];
  const el = h("div", { class: "lab" },
    h("header", { class: "top" }, badge.el, run.el),
    banner.el, strip.el,
    h("div", { class: "scene" }, h("div", { class: "stream" }, grid.el, typed.el), dials.el),
    bar.el, shortRead.el, timeline.el, now.el,
    h("div", { class: "panels" }, roofline.el, ledger.el, sensors.el),
    scale.el, whole.el, notes.el);
  return { el, parts: [badge, banner, run, strip, grid, typed, dials, scale, timeline, bar, shortRead, now, roofline, ledger, sensors, whole, notes] };
}
