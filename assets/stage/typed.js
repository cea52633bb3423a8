/**
 * The text as it was written, token by token, the newest marked. Model text is text nodes and nothing else. Only the last
 * KEPT_TOKENS are on the page, so that a long answer does not slow it; where text is withheld a token is a block.
 */

import { h, setText } from "./dom.js";
import { count } from "./format.js";

const KEPT_TOKENS = 800;
const BLOCK = "■ ";

export class TypedText {
  constructor() {
    this.caption = h("p", { class: "typed-caption" });
    this.text = h("div", { class: "typed-text", tabindex: "0", role: "region", "aria-label": "Text written so far" });
    this.el = h("div", { class: "typed" }, this.caption, this.text);
    this.shown = 0;
  }

  /** Room below the last line, so that a scrolled text begins with a whole line. */
  layout() {
    const line_px = parseFloat(getComputedStyle(this.text).lineHeight);
    this.text.style.paddingBottom = `${this.text.clientHeight % line_px}px`;
    this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {any} state @param {any} view */
  update(state, view) {
    const tokens = view.fold.tokenList().told;
    const wanted = Math.min(state.nShown, tokens.length);
    this.#say(state, wanted);
    if (this.source !== view.fold.tokenList() || wanted < this.shown || wanted - this.shown > KEPT_TOKENS) this.#restart(view.fold.tokenList(), wanted);
    if (wanted === this.shown) return;
    const withheld = view.fold.header?.text_withheld === true;
    const fresh = document.createDocumentFragment();
    for (; this.shown < wanted; this.shown += 1) fresh.append(h("span", {}, withheld ? BLOCK : tokens[this.shown].text));
    this.text.append(fresh);
    this.#trim();
    this.text.scrollTop = this.text.scrollHeight;
  }

  #say(state, wanted) {
    const writing = state.phase === "decode" ? ", one a pass" : "";
    setText(this.caption, wanted ? `Answer: ${count(wanted, "token")}${writing}` : "Answer: nothing written yet");
  }

  #restart(list, wanted) {
    this.source = list;
    this.text.replaceChildren();
    this.shown = Math.max(0, wanted - KEPT_TOKENS);
  }

  #trim() {
    while (this.text.childNodes.length > KEPT_TOKENS) this.text.firstChild.remove();
    this.text.dataset.cut = String(this.shown > KEPT_TOKENS);
  }
}
