/**
 * The roofline: what this machine could do at each arithmetic intensity, and where the pass stands under it.
 * Plotly draws axes and roof; the operating point and its trail of past passes are drawn over it.
 */

import { h, s, setText } from "./dom.js";

const TRAIL = 48;
const AXES = { x: [-1, 3.7] }; // decades of FLOP/byte
const DECADES_BELOW_ROOF = 3;

export class Roofline {
  constructor() {
    this.plot = h("div", { class: "roof-plot" });
    this.overlay = s("svg", { class: "roof-overlay", "aria-hidden": "true" });
    this.why = h("p", { class: "panel-empty" });
    this.el = h("div", { class: "roofline panel", tabindex: "0", "data-tip": "derived: model arithmetic ÷ measured time, under the ceilings of this run. Left of the ridge memory is the limit, right of it compute." },
      h("p", { class: "panel-title" }, "Roofline"), this.face = h("div", { class: "roof-face" }, this.plot, this.overlay), this.why);
  }

  layout(theme, plotly) {
    this.theme = theme;
    this.plotly = plotly;
    this.drawn = undefined;
  }

  update(state, view) {
    const { prefill_compute: prefill, decode_compute: decode, memory } = view.fold.header?.ceilings ?? {};
    const compute = prefill ?? decode;
    this.face.hidden = !compute || !memory;
    setText(this.why, compute && memory ? "" : "The roof cannot be drawn: a ceiling of this machine is not known.");
    if (!compute || !memory || !this.plotly) return;
    this.#drawRoof([...new Set([prefill, decode].filter(Boolean).map((peak) => peak.value))], memory.value);
    this.#drawPoints(state, view);
  }

  #drawRoof(computes, memory) {
    const [width, height] = [this.plot.clientWidth, this.plot.clientHeight];
    const key = `${width}x${height}|${computes}|${memory}`;
    if (key === this.drawn || !width || !height) return;
    this.drawn = key;
    this.plotly.react(this.plot, roofTraces(computes, memory, this.theme), roofLayout(computes, width, height, this.theme), { staticPlot: true });
    this.overlay.replaceChildren();
    this.trail = s("g", { class: "roof-trail" });
    this.means = Object.fromEntries(["prefill", "decode"].map((phase) => [phase, meanMark(phase)]));
    this.point = s("circle", { class: "roof-point", r: 9 });
    this.overlay.append(this.trail, this.means.prefill, this.means.decode, this.point);
    this.trailKey = undefined;
  }

  #drawPoints(state, view) {
    if (!this.point) return;
    for (const phase of ["prefill", "decode"]) this.#put(this.means[phase], view.averages[phase].intensity, view.averages[phase].flopsPerS);
    const step = state.phase !== "done" && state.step?.held ? state.step : null;
    this.point.dataset.phase = step?.phase ?? "";
    this.#put(this.point, step?.intensity ?? null, step?.flopsPerS ?? null);
    const upTo = view.fold.steps.countUntil(state.t);
    if (this.trailKey === upTo) return;
    this.trailKey = upTo;
    const past = view.fold.steps.items.slice(Math.max(0, upTo - TRAIL), upTo);
    this.trail.replaceChildren(...past.map((passed, i) => this.#trailDot(passed, (i + 1) / past.length)).filter(Boolean));
  }

  #trailDot(step, strength) {
    if (step.flops === null || !step.bytes) return null;
    const bytes = step.bytes.weights + step.bytes.kv_read + step.bytes.kv_write + step.bytes.activations;
    const reads = step.rows.some((row) => row[3] === "prefill");
    const dot = s("circle", { class: reads ? "reading" : "writing", r: 4, opacity: 0.15 + 0.55 * strength });
    return this.#put(dot, step.flops / bytes, step.flops / (step.t1 - step.t0)) ? dot : null;
  }

  #put(node, x, y) {
    const axes = this.plot._fullLayout;
    const known = x !== null && y !== null && x > 0 && y > 0 && axes?.xaxis?.d2p;
    node.style.visibility = known ? "visible" : "hidden";
    if (known) node.setAttribute("transform", `translate(${axes.xaxis._offset + axes.xaxis.d2p(x)} ${axes.yaxis._offset + axes.yaxis.d2p(y)})`);
    return known;
  }
}

function meanMark(phase) {
  const word = phase === "prefill" ? "reading" : "writing";
  const text = s("text", { class: "roof-word", x: 0, y: -14, "text-anchor": phase === "prefill" ? "end" : "start" });
  text.append(word);
  return s("g", { class: word }, s("rect", { x: -6, y: -6, width: 12, height: 12, transform: "rotate(45)" }), text);
}

function roofTraces(computes, memory, theme) {
  const [from, to] = AXES.x.map((decade) => 10 ** decade);
  return computes.map((compute, i) => {
    const xs = [from, compute / memory, to];
    return { type: "scatter", mode: "lines", x: xs, y: xs.map((x) => Math.min(compute, memory * x)), line: { color: theme.text, width: 3, dash: i ? "dash" : "solid" }, hoverinfo: "skip" };
  });
}

function roofLayout(computes, width, height, theme) {
  const top = Math.max(...computes);
  const highest = Math.log10(top) + 0.35;
  const axis = { type: "log", gridcolor: theme.line, tickfont: { size: 14, color: theme.muted }, zeroline: false, dtick: 1 };
  return {
    width, height, showlegend: false, margin: { l: 62, r: 14, t: 10, b: 48 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: theme.font, color: theme.text, size: 14 },
    xaxis: { ...axis, range: AXES.x, ...decadeTicks(AXES.x, ""), title: { text: "FLOP/byte", font: { size: 14 }, standoff: 6 } },
    yaxis: { ...axis, range: [highest - 0.35 - DECADES_BELOW_ROOF, highest], ...decadeTicks([Math.floor(highest) - DECADES_BELOW_ROOF, Math.floor(highest)], "FLOP/s"), title: { text: "FLOP/s", font: { size: 14 }, standoff: 4 } },
  };
}

/** Whole decades, written out: 1 G, 10 G, 100 G. */
function decadeTicks([from, to], unit) {
  const decades = Array.from({ length: Math.floor(to) - Math.ceil(from) + 1 }, (_, i) => Math.ceil(from) + i);
  return { tickvals: decades.map((d) => 10 ** d), ticktext: decades.map((d) => (unit ? shortScale(d) : (10 ** d).toLocaleString("en-GB"))) };
}

function shortScale(decade) {
  const thousands = Math.floor(decade / 3);
  return `${10 ** (decade - 3 * thousands)} ${["", "k", "M", "G", "T", "P"][thousands] ?? ""}`;
}
