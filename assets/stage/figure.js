/**
 * One labelled figure. It can say where it comes from and what it is a share of; unknown is a dash with its reason.
 */

import { h, setAttribute, setText } from "./dom.js";
import { DASH } from "./format.js";
import { Held } from "./motion.js";

export class Figure {
  /** @param {string} name data-figure, for tests and style @param {string} label as shown */
  constructor(name, label) {
    this.value = h("dd", { class: "figure-value" }, DASH);
    this.label = h("dt", { class: "figure-label" }, label);
    this.el = h("div", { class: "figure", "data-figure": name, tabindex: "0" }, this.label, this.value);
    this.held = new Held();
  }

  /**
   * @param {string} text @param {{tip: string, reason?: string}} about `reason` stands in where the text is a dash
   * @param {any} view @param {any} [key] at a change of key the text follows at once
   */
  set(text, about, view, key) {
    const shown = this.held.take(text, `${key}${text === DASH}`, view.now_ms, view.still);
    const known = !shown.startsWith(DASH);
    setText(this.value, shown);
    setAttribute(this.el, "data-tip", known || !about.reason ? about.tip : about.reason);
    setAttribute(this.el, "data-known", known);
  }
}

/** A list of figures. @param {string} label @param {Figure[]} figures */
export const figureList = (label, figures) => h("dl", { class: "figures", "aria-label": label }, ...figures.map((figure) => figure.el));
