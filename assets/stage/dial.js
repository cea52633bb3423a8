/**
 * One dial: how much of one limit is in use, in reading and in writing.
 *
 * Plotly draws the face and the ticks (a plain band stands in where it is not at hand: before it is loaded, and in a
 * report, which does not carry its megabytes); arcs, needles and numbers lie over it in SVG and text. Both phases are always on
 * the dial: the one that runs has the solid needle, the other a dashed ghost at its average over the run, so that the
 * contrast stands at every instant. Needle, arc, number and word say the same thing.
 */

import { h, s, setAttribute, setText } from "./dom.js";
import { DASH, percent } from "./format.js";
import { Held, ease } from "./motion.js";

const PHASES = ["prefill", "decode"];
const WORDS = { prefill: "reading", decode: "writing" };
const OVER = 1.04; // a needle past the end stands just behind it; the number tells how far
const INNER = 0.75; // Plotly's dial: the band lies between this part of the radius and the whole

/**
 * @typedef {{active: "prefill" | "decode" | "both" | null, shares: Record<string, number | null>, name: string,
 *   absolute: string, of: string, tip: string, reason: string}} DialInput   `reason` says why a share is unknown
 */

export class Dial {
  /** @param {"compute" | "memory"} kind */
  constructor(kind) {
    this.kind = kind;
    this.name = h("h3", { class: "dial-name" });
    this.plot = h("div", { class: "dial-plot" });
    this.overlay = s("svg", { class: "dial-overlay", "aria-hidden": "true" });
    this.numbers = Object.fromEntries(PHASES.map((phase) => [phase, numberSlot(phase)]));
    this.of = h("p", { class: "dial-of" });
    this.absolute = h("p", { class: "dial-absolute" });
    this.el = h("div", { class: "dial", role: "img", "aria-label": kind, tabindex: "0", "data-kind": kind },
      this.name, h("div", { class: "dial-face" }, this.plot, this.overlay),
      h("div", { class: "dial-numbers" }, this.numbers.prefill.el, this.numbers.decode.el), this.absolute, this.of);
    this.shown = { prefill: null, decode: null };
    this.held = { prefill: new Held(), decode: new Held(), absolute: new Held() };
  }

  /** Draws the face anew: at the start, and when size or theme changed. */
  layout(theme, plotly) {
    const width = this.plot.clientWidth;
    const height = this.plot.clientHeight;
    if (!width || !height) return;
    if (plotly) plotly.react(this.plot, [face(theme, width)], faceLayout(theme, width, height), { staticPlot: true });
    this.#drawOverlay(width, height);
  }

  #drawOverlay(width, height) {
    const { x, y, radius } = this.#geometry(width, height);
    const lane = { prefill: (INNER + (1 - INNER) * 0.74) * radius, decode: (INNER + (1 - INNER) * 0.26) * radius };
    const thick = radius * (1 - INNER) * 0.4;
    this.overlay.setAttribute("viewBox", `0 0 ${width} ${height}`); // paper has another width than the screen
    this.overlay.replaceChildren(...(this.#band() ? [] : plainFace(x, y, radius, ticksFor(width))));
    this.parts = {};
    for (const phase of PHASES) {
      const length = Math.PI * lane[phase];
      const arc = s("path", { class: `arc ${WORDS[phase]}`, d: halfCircle(x, y, lane[phase]), "stroke-width": thick, "stroke-dasharray": `${length} ${length * 2}`, "stroke-dashoffset": length });
      const tip = y - radius * 0.97;
      const needle = s("g", { class: `needle ${WORDS[phase]}` },
        s("polygon", { class: "needle-solid", points: `${x - 5},${y} ${x + 5},${y} ${x + 1},${tip} ${x - 1},${tip}` }),
        s("line", { class: "needle-ghost", x1: x, y1: y, x2: x, y2: tip }));
      this.overlay.append(arc);
      this.parts[phase] = { arc, length, needle, x, y };
    }
    this.overlay.append(this.parts.prefill.needle, this.parts.decode.needle, s("circle", { class: "hub", cx: x, cy: y, r: Math.max(6, radius * 0.07) }));
    for (const phase of PHASES) this.#place(phase);
    this.active = undefined;
  }

  #geometry(width, height) {
    const band = this.#band();
    if (!band) return { x: width / 2, y: height - 10, radius: Math.min(width / 2 - 34, height - 34) };
    const box = band.getBoundingClientRect();
    const origin = this.plot.getBoundingClientRect();
    return { x: box.left - origin.left + box.width / 2, y: box.bottom - origin.top, radius: box.width / 2 };
  }

  #band() { return this.plot.querySelector(".bg-arc path"); }

  /** @param {DialInput} input @param {any} view */
  update(input, view) {
    setText(this.name, input.name);
    for (const phase of PHASES) {
      const share = input.shares[phase];
      this.shown[phase] = ease(this.shown[phase], share, view.elapsed_s, view.still);
      this.#place(phase);
      const held = this.held[phase].take(share, `${input.active}${share === null}`, view.now_ms, view.still);
      setText(this.numbers[phase].value, percent(held));
    }
    setText(this.absolute, this.held.absolute.take(input.absolute, input.active, view.now_ms, view.still));
    setText(this.of, input.of);
    this.#mark(input.active);
    this.#describe(input, input.active === "prefill" ? "prefill" : "decode");
  }

  #place(phase) {
    const part = this.parts?.[phase];
    if (!part) return;
    const share = this.shown[phase];
    const turned = Math.min(Math.max(share ?? 0, 0), OVER);
    part.arc.setAttribute("stroke-dashoffset", String(part.length * (1 - Math.min(turned, 1))));
    part.needle.setAttribute("transform", `rotate(${-90 + 180 * turned} ${part.x} ${part.y})`);
    part.needle.style.visibility = share === null ? "hidden" : "";
  }

  #mark(active) {
    if (this.active === active) return;
    this.active = active;
    for (const phase of PHASES) {
      const role = active === phase || active === "both" ? "active" : "ghost";
      this.numbers[phase].el.dataset.role = role;
      if (this.parts) for (const node of [this.parts[phase].arc, this.parts[phase].needle]) node.dataset.role = role;
    }
  }

  #describe(input, now) {
    const numbers = PHASES.map((phase) => this.numbers[phase].value.textContent);
    const key = `${numbers}|${input.active}|${input.tip}`;
    if (key === this.described) return;
    this.described = key;
    const share = input.shares[now];
    const other = now === "prefill" ? "decode" : "prefill";
    this.#sayValue(input.name, share, `${WORDS[now]} ${share === null ? `${DASH}, ${input.reason}` : `${percent(share)} ${input.of}`}`);
    setAttribute(this.el, "data-ghost", `${WORDS[other]} ${percent(input.shares[other])}`);
    setAttribute(this.el, "data-tip", input.tip);
  }

  /** A meter must have a value; without one the dial is a picture that says why. */
  #sayValue(name, share, words) {
    const known = share !== null;
    const attributes = {
      role: known ? "meter" : "img", "aria-label": known ? name : `${name}: ${words}`, "aria-valuetext": known ? words : null,
      "aria-valuenow": known ? Math.round(share * 1000) / 10 : null, "aria-valuemin": known ? 0 : null, "aria-valuemax": known ? 100 : null,
    };
    for (const [attribute, value] of Object.entries(attributes)) setAttribute(this.el, attribute, value);
  }
}

function numberSlot(phase) {
  const value = h("b", { class: "dial-value" }, DASH);
  return { value, el: h("div", { class: `dial-number ${WORDS[phase]}` }, value, h("span", { class: "dial-word" }, WORDS[phase])) };
}

const halfCircle = (x, y, r) => `M ${x - r} ${y} A ${r} ${r} 0 0 1 ${x + r} ${y}`;

const ticksFor = (width) => (width < 230 ? [0, 50, 100] : [0, 25, 50, 75, 100]);

function plainFace(x, y, radius, ticks) {
  const band = s("path", { class: "face-band", d: halfCircle(x, y, (radius * (1 + INNER)) / 2), "stroke-width": radius * (1 - INNER) });
  return [band, ...ticks.map((tick) => {
    const angle = Math.PI * (1 - tick / 100);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const text = s("text", { class: "face-tick", x: x + (radius + 8) * cos, y: y - (radius + 8) * sin, "text-anchor": cos > 0.2 ? "start" : cos < -0.2 ? "end" : "middle" });
    text.append(String(tick));
    return text;
  })];
}

function face(theme, width) {
  return {
    type: "indicator", mode: "gauge", value: 0,
    gauge: {
      axis: { range: [0, 100], tickvals: ticksFor(width), tickfont: { size: 14, color: theme.muted }, tickcolor: theme.muted, ticklen: 5 },
      bar: { thickness: 0 }, borderwidth: 0, bgcolor: theme.raised,
    },
  };
}

function faceLayout(theme, width, height) {
  return {
    width, height, margin: { l: 34, r: 34, t: 24, b: 8 }, paper_bgcolor: "rgba(0,0,0,0)",
    font: { family: theme.font, color: theme.text, size: 14 },
  };
}
