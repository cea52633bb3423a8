/**
 * The run from its request to its end: phases shaded, the shares of both limits as steps, the viewer's place as a line.
 *
 * What is known is drawn once into a bitmap and again only when it changes, so a frame costs one copy and one line. Of
 * several passes in one column of pixels the highest and the lowest are drawn: no pass is averaged away.
 */

import { fitCanvas, h } from "./dom.js";
import { bytesOf, computeCeiling, phaseOf, ratio, shareOf } from "./sums.js";

const GROWING_EVERY_MS = 120;
const AXIS_PX = 24;
const TOP_PX = 8;
const TICK_EVERY_PX = 150;

export class Timeline {
  /** @param {(t: number, done: boolean) => void} onSeek */
  constructor(onSeek) {
    this.canvas = h("canvas", { class: "timeline-canvas", "aria-hidden": "true" });
    this.el = h("div", { class: "timeline" }, h("p", { class: "panel-title" }, "Timeline",
      h("span", { class: "legend compute" }, "share of compute"), h("span", { class: "legend memory" }, "share of memory")), this.canvas);
    this.still = document.createElement("canvas");
    this.#listen(onSeek);
  }

  #listen(onSeek) {
    const at = (event) => ((event.clientX - this.canvas.getBoundingClientRect().left) / this.canvas.clientWidth) * (this.end || 0);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      onSeek(at(event), false);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons && onSeek(at(event), false));
    this.canvas.addEventListener("pointerup", (event) => onSeek(at(event), true));
  }

  layout() { this.key = undefined; }

  update(state, view) {
    const fitted = fitCanvas(this.canvas);
    if (!fitted) return;
    this.end = view.scene.end;
    this.#redrawStill(fitted, view);
    const { context, width, height } = fitted;
    context.clearRect(0, 0, width, height);
    context.drawImage(this.still, 0, 0, width, height);
    const x = this.end ? (Math.min(state.t, this.end) / this.end) * width : 0;
    context.fillStyle = view.theme.text;
    context.fillRect(Math.min(Math.max(x - 1, 0), width - 2), 0, 2, height - AXIS_PX + 4);
  }

  #redrawStill({ width, height }, view) {
    const key = `${width}x${height}|${view.theme.key}|${view.fold.version}`;
    const early = !view.scene.complete && view.now_ms - (this.drawnAt ?? -Infinity) < GROWING_EVERY_MS;
    if (key === this.key || (this.key && early)) return;
    this.key = key;
    this.drawnAt = view.now_ms;
    [this.still.width, this.still.height] = [this.canvas.width, this.canvas.height];
    const context = this.still.getContext("2d");
    context.setTransform(this.canvas.width / width, 0, 0, this.canvas.height / height, 0, 0);
    context.clearRect(0, 0, width, height);
    const box = { width, top: TOP_PX, floor: height - AXIS_PX, end: this.end || 1 };
    drawPhases(context, box, view);
    drawAxis(context, box, view.theme);
    drawShares(context, box, view, "compute");
    drawShares(context, box, view, "memory");
  }
}

function drawPhases(context, box, view) {
  const names = { prefill: ["reading", view.theme.readingSoft], decode: ["writing", view.theme.writingSoft] };
  context.font = `600 14px ${view.theme.font}`;
  for (const span of view.fold.spans()) {
    const [name, colour] = names[span.phase] ?? [];
    if (!name) continue;
    const [x0, x1] = [(span.t0 / box.end) * box.width, (span.t1 / box.end) * box.width];
    context.globalAlpha = 0.5;
    context.fillStyle = colour;
    context.fillRect(x0, 0, Math.max(1, x1 - x0), box.floor);
    context.globalAlpha = 1;
    context.fillStyle = view.theme.text;
    if (x1 - x0 > context.measureText(name).width + 12) context.fillText(name, x0 + 6, box.top + 12);
  }
}

function drawAxis(context, box, theme) {
  context.strokeStyle = theme.line;
  context.fillStyle = theme.muted;
  context.font = `14px ${theme.font}`;
  context.lineWidth = 1;
  for (const share of [0, 0.5, 1]) {
    const y = Math.round(level(box, share)) + 0.5;
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(box.width, y);
    context.stroke();
  }
  const step = niceStep(box.end / (box.width / TICK_EVERY_PX));
  for (let t = 0; t <= box.end; t += step) {
    const x = (t / box.end) * box.width;
    context.textAlign = x < 20 ? "left" : x > box.width - 30 ? "right" : "center";
    context.fillText(tickText(t, step), x, box.floor + 18);
  }
  context.textAlign = "left";
}

/** The next of 1, 2, 5 times a power of ten. */
function niceStep(least) {
  const decade = 10 ** Math.floor(Math.log10(least));
  return decade * ([1, 2, 5].find((step) => step * decade >= least) ?? 10);
}

const tickText = (t, step) => `${t.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))}\u202fs`;

const level = (box, share) => box.floor - Math.min(Math.max(share, 0), 1) * (box.floor - box.top);

function drawShares(context, box, view, kind) {
  context.strokeStyle = view.theme[kind];
  context.lineWidth = 2.5;
  context.setLineDash(kind === "memory" ? [6, 3] : []);
  context.beginPath();
  let column = null;
  for (const step of view.fold.steps.items) {
    const share = stepShare(step, view.fold.header?.ceilings, kind);
    if (share === null) continue;
    const [x0, x1, y] = [(step.t0 / box.end) * box.width, (step.t1 / box.end) * box.width, level(box, share)];
    if (column && x1 - column.x < 1) {
      column = { x: column.x, low: Math.min(column.low, y), high: Math.max(column.high, y) };
      continue;
    }
    if (column && column.low !== column.high) { context.moveTo(column.x, column.low); context.lineTo(column.x, column.high); }
    context[column ? "lineTo" : "moveTo"](x0, y);
    context.lineTo(Math.max(x1, x0 + 1), y);
    column = { x: x1, low: y, high: y };
  }
  context.stroke();
  context.setLineDash([]);
}

function stepShare(step, ceilings, kind) {
  const time = step.t1 - step.t0;
  if (kind === "memory") return shareOf(ratio(bytesOf(step) ?? NaN, time), ceilings?.memory);
  return shareOf(ratio(step.flops ?? NaN, time), computeCeiling(ceilings, phaseOf(step)));
}
