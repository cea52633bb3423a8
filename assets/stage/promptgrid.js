/**
 * The prompt as a field of squares, one a token (or one a few tokens, and then it says so). The squares of one pass light
 * up together: that is what reading at once means.
 */

import { fitCanvas, h, setText } from "./dom.js";
import { DASH, count } from "./format.js";

const SMALLEST_PX = 4;
const LARGEST_PX = 22;

export class PromptGrid {
  constructor() {
    this.canvas = h("canvas", { class: "grid-canvas", role: "img", onpointermove: (event) => this.#name(event) });
    this.caption = h("p", { class: "grid-caption" });
    this.el = h("div", { class: "grid" }, this.caption, this.canvas);
  }

  layout() { this.drawn = undefined; }

  /** The text of the token under the pointer, as the browser's own tip: characters, never markup. */
  #name(event) {
    const { cell, columns, perSquare } = this.squares ?? {};
    const pieces = this.pieces;
    if (!cell || !pieces) return;
    const token = (Math.floor(event.offsetY / cell) * columns + Math.floor(event.offsetX / cell)) * perSquare;
    this.canvas.title = token < pieces.length ? `token ${token + 1}: ${JSON.stringify(pieces[token])}` : "";
  }

  /** @param {any} state @param {any} view */
  update(state, view) {
    const { total, lit, inFlight } = state.prompt;
    this.#say(state, view);
    const pulse = inFlight && !view.reduced ? Math.round(view.now_ms / 50) % 12 : 0;
    const key = `${total}|${lit}|${inFlight?.to}|${pulse}|${this.canvas.clientWidth}x${this.canvas.clientHeight}|${view.theme.key}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const fitted = fitCanvas(this.canvas);
    if (fitted) this.#draw(fitted, { total, lit, inFlight, pulse }, view.theme);
  }

  #say(state, view) {
    const { total, lit, inFlight } = state.prompt;
    this.pieces = state.request?.pieces ?? null;
    const perSquare = this.squares?.perSquare > 1 ? `, ${this.squares.perSquare} a square` : "";
    const begun = state.phase === "prefill" && lit === 0; // live: a pass tells of itself when it is done
    const progress = begun && !inFlight ? "reading" : inFlight ? `reading ${(inFlight.to - inFlight.from).toLocaleString("en-GB")} at once` : lit ? `${lit.toLocaleString("en-GB")} read` : "not read yet";
    setText(this.caption, total === null ? `Prompt: ${DASH} tokens` : `Prompt: ${count(total, "token")}, ${progress}${perSquare}`);
    if (this.labelled !== progress) {
      this.labelled = progress;
      this.canvas.setAttribute("aria-label", `Prompt tokens: ${progress}`);
    }
  }

  #draw({ context, width, height }, { total, lit, inFlight, pulse }, theme) {
    context.clearRect(0, 0, width, height);
    if (!total) return;
    this.squares = squares(total, width, height);
    const { cell, columns, perSquare } = this.squares;
    const side = Math.max(1, cell - Math.max(1, Math.round(cell * 0.16)));
    const nSquares = Math.ceil(total / perSquare);
    for (let i = 0; i < nSquares; i += 1) {
      const token = i * perSquare;
      const flying = inFlight && token >= inFlight.from && token < inFlight.to;
      context.fillStyle = flying || token < lit ? theme.reading : theme.line;
      context.globalAlpha = flying ? 0.55 + 0.45 * Math.abs(Math.sin((pulse / 12) * Math.PI)) : token < lit ? 1 : 0.55;
      context.fillRect((i % columns) * cell, Math.floor(i / columns) * cell, side, side);
    }
    context.globalAlpha = 1;
  }
}

/** The largest square with which all tokens fit; below the smallest, a square stands for several. */
function squares(total, width, height) {
  for (let cell = LARGEST_PX; cell >= SMALLEST_PX; cell -= 1) {
    const columns = Math.floor(width / cell);
    if (columns * Math.floor(height / cell) >= total) return { cell, columns, perSquare: 1 };
  }
  const columns = Math.max(1, Math.floor(width / SMALLEST_PX));
  const room = Math.max(1, columns * Math.floor(height / SMALLEST_PX));
  return { cell: SMALLEST_PX, columns, perSquare: Math.ceil(total / room) };
}
