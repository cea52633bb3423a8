/**
 * What sensors read, each with its provenance and the age of its value; a sensor that reads nothing says why.
 */

import { h, setAttribute, setText } from "./dom.js";
import { DASH, reading, seconds } from "./format.js";
import { provenanceWords } from "./words.js";

export class Sensors {
  constructor() {
    this.body = h("tbody", {});
    this.empty = h("p", { class: "panel-empty" });
    this.el = h("div", { class: "sensors panel" }, h("p", { class: "panel-title" }, "Sensors"),
      h("table", {}, h("thead", {}, h("tr", {}, ...["what", "value", "age"].map((name) => h("th", { scope: "col" }, name)))), this.body), this.empty);
    this.rows = new Map();
  }

  layout() {}

  update(state, view) {
    const about = view.fold.header?.sensors ?? [];
    setText(this.empty, about.length || state.samples.length ? "" : "This run was recorded without sensors.");
    const second = Math.floor(view.now_ms / 250);
    if (!view.still && this.second === second && this.fold === view.fold) return;
    if (this.fold !== view.fold) { this.rows.clear(); this.body.replaceChildren(); }
    [this.second, this.fold] = [second, view.fold];
    for (const sensor of about) this.#show(sensor, state.samples.find((s) => same(s, sensor)));
    for (const sample of state.samples) if (!about.some((sensor) => same(sample, sensor))) this.#show(sample, sample);
  }

  #show(sensor, sample) {
    const row = this.#row(`${sensor.sensor}/${sensor.metric}/${sensor.device}`, sensor);
    const value = sample?.value ?? null;
    const reason = sample?.reason ?? sensor.reason ?? "No reading has come yet.";
    setText(row.value, value === null ? DASH : reading(value, sensor.unit));
    setText(row.age, value === null ? "" : seconds(Math.max(0, Math.round(sample.age_s * 100) / 100), 2));
    setText(row.why, value === null ? reason : provenanceWords(sensor.provenance));
    setAttribute(row.el, "data-known", value !== null);
  }

  #row(key, sensor) {
    if (this.rows.has(key)) return this.rows.get(key);
    const [value, age, why] = [h("td", {}, DASH), h("td", {}), h("small", {})];
    const name = h("th", { scope: "row" }, h("span", {}, sensor.label ?? sensor.metric), why);
    const row = { value, age, why, el: h("tr", { "data-metric": sensor.metric }, name, value, age) };
    this.body.append(row.el);
    this.rows.set(key, row);
    return row;
  }
}

const same = (sample, sensor) => sample.sensor === sensor.sensor && sample.metric === sensor.metric && (sample.device ?? null) === (sensor.device ?? null);
