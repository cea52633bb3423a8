/**
 * Two runs side by side on one clock: a compact column each, the sentence that compares them, and one player bar for both.
 * The columns are made of the same parts as the other densities; each is told its own run's state.
 */

import { Badge } from "./badge.js";
import { PlayerBar } from "./controls.js";
import { Dials } from "./dials.js";
import { h, setText } from "./dom.js";
import { Figures } from "./figures.js";
import { times } from "./format.js";
import { Headline } from "./headline.js";
import { Banner } from "./notes.js";
import { PromptGrid } from "./promptgrid.js";
import { TypedText } from "./typed.js";
import { machineName } from "./words.js";

const FIGURES = ["ttft", "tpot", "prefillRate", "decodeRate"];
const NEARLY_SAME = 1.05;

class Column {
  constructor(side) {
    const [badge, banner, headline, dials] = [new Badge(), new Banner(), new Headline(), new Dials()];
    const [grid, typed, figures] = [new PromptGrid(), new TypedText(), new Figures(`Figures of the ${side} run`, FIGURES)];
    this.el = h("section", { class: "column", "aria-label": `The ${side} run` },
      badge.el, banner.el, headline.el, dials.el, h("div", { class: "stream" }, grid.el, typed.el), figures.el);
    this.parts = [badge, banner, headline, dials, grid, typed, figures];
  }

  layout(theme, plotly) {
    for (const part of this.parts) part.layout(theme, plotly);
  }

  update(state, view) {
    for (const part of this.parts) part.update(state, view);
  }
}

/** The column of the second run; it draws what the view says of it. */
class Second extends Column {
  update(_state, view) {
    if (view.beside) super.update(view.beside.state, view.beside.view);
  }
}

class Contrast {
  constructor() {
    this.el = h("p", { class: "contrast", role: "status" });
  }

  layout() {}

  update(_state, view) {
    if (view.beside) setText(this.el, contrast(view, view.beside.view));
  }
}

/** "Reading: H100 is 3.1 times as fast. Writing: …", the faster one named, different models told; empty while unknown. */
export function contrast(left, right) {
  const names = namesOf(left.fold.header, right.fold.header);
  const clauses = [["Reading", "prefill_tok_s"], ["Writing", "decode_tok_s"]].map(([word, figure]) => {
    const ratio = right.summary[figure] / left.summary[figure];
    if (!left.summary[figure] || !Number.isFinite(ratio) || ratio === 0) return null;
    const [faster, by] = ratio >= 1 ? [names[1], ratio] : [names[0], 1 / ratio];
    return by < NEARLY_SAME ? `${word}: the same speed.` : `${word}: ${faster} is ${times(by)} as fast.`;
  });
  const [a, b] = [left.fold.header?.model?.name, right.fold.header?.model?.name];
  const caution = clauses.some(Boolean) && a !== b ? `They run different models: ${a} and ${b}.` : null;
  return [...clauses, caution].filter(Boolean).join(" ");
}

/** What tells the two apart: the machine, else the precision, else the model, else the side. */
function namesOf(left, right) {
  const candidates = [machineName, (header) => header?.precision, (header) => header?.model?.name];
  const telling = candidates.find((name) => name(left) && name(right) && name(left) !== name(right));
  return telling ? [telling(left), telling(right)] : ["the left run", "the right run"];
}

export function buildCompare({ actions }) {
  const [contrastLine, left, right, bar] = [new Contrast(), new Column("left"), new Second("right"), new PlayerBar(actions)];
  const el = h("div", { class: "compare" }, contrastLine.el, bar.el, h("div", { class: "columns" }, left.el, right.el));
  return { el, parts: [contrastLine, bar, left, right] };
}
