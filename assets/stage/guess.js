/**
 * A question that wants an answer before the run gives its own. What was guessed stays in this browser: it is found again
 * at the next visit, and the page's script is told of it only so that it can answer. A browser that forbids storage asks
 * again at the next visit.
 *
 * A component of its own beside the stage; it shares the stage's way of touching the page, nothing else.
 */

import { h } from "./dom.js";

const PREFIX = "siliconscope-guess:";
const STYLE = `
  .guess { color: var(--st-text-color); font: 1.05rem/1.4 var(--st-font, sans-serif); }
  fieldset { margin: 0; padding: 12px 16px 14px; border: 2px solid var(--st-border-color, currentColor); border-radius: 10px; min-width: 0; }
  legend { padding: 0 6px; font-weight: 700; font-size: 1.15rem; }
  .choices { display: flex; flex-wrap: wrap; gap: 6px 18px; margin-bottom: 10px; }
  label { display: flex; gap: 8px; align-items: center; min-height: 36px; cursor: pointer; }
  input { width: 20px; height: 20px; margin: 0; accent-color: var(--st-text-color); }
  button { font: inherit; font-weight: 650; min-height: 44px; padding: 4px 18px; border: 2px solid var(--st-text-color); border-radius: 8px; color: var(--st-background-color); background: var(--st-text-color); cursor: pointer; }
  button[aria-disabled="true"] { color: var(--st-text-color); background: transparent; border-style: dashed; cursor: not-allowed; }
  button.again { color: var(--st-text-color); background: transparent; border-width: 1px; }
  .made { display: flex; flex-wrap: wrap; gap: 8px 18px; align-items: center; margin: 0; }
  :focus-visible { outline: 3px solid var(--st-text-color); outline-offset: 3px; border-radius: 6px; }
`;

/** @type {WeakMap<Node, Guess>} */
const GUESSES = new WeakMap();

/** @param {{data: any, parentElement: any, setStateValue: Function}} component */
export default function guess(component) {
  const root = component.parentElement;
  if (!GUESSES.has(root)) GUESSES.set(root, new Guess(root));
  GUESSES.get(root).update(component);
}

class Guess {
  constructor(root) {
    this.el = h("div", { class: "guess" });
    this.el.addEventListener("keydown", (event) => event.stopPropagation()); // Streamlit's own r and c
    root.append(h("style", {}, STYLE), this.el);
  }

  update({ data, setStateValue }) {
    this.tell = (choice) => setStateValue("choice", choice);
    const key = JSON.stringify(data);
    if (key === this.key) return;
    this.key = key;
    this.data = data;
    const kept = recall(data.name);
    const choice = data.choices.includes(kept) ? kept : null;
    this.#draw(choice);
    if (choice !== null) this.tell(choice);
  }

  #draw(choice) {
    this.el.replaceChildren(choice === null ? this.#question() : this.#answer(choice));
  }

  #question() {
    const { name, question, choices, words } = this.data;
    let chosen = null;
    const commit = h("button", { type: "button", "aria-disabled": "true", onclick: () => chosen !== null && this.#settle(chosen) }, words.commit);
    const choose = (choice) => {
      chosen = choice;
      commit.removeAttribute("aria-disabled");
    };
    return h("fieldset", {}, h("legend", {}, question),
      h("div", { class: "choices" }, ...choices.map((choice) => h("label", {}, h("input", { type: "radio", name, onchange: () => choose(choice) }), choice))), commit);
  }

  #answer(choice) {
    const { question, words } = this.data;
    return h("fieldset", {}, h("legend", {}, question),
      h("p", { class: "made", role: "status" }, h("span", {}, words.made, " ", h("b", {}, choice)), h("button", { class: "again", type: "button", onclick: () => this.#settle(null) }, words.again)));
  }

  #settle(choice) {
    keep(this.data.name, choice);
    this.#draw(choice);
    this.el.querySelector(choice === null ? "input" : "button").focus(); // what had the focus is gone
    this.tell(choice);
  }
}

function recall(name) {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

function keep(name, choice) {
  try {
    choice === null ? window.localStorage.removeItem(PREFIX + name) : window.localStorage.setItem(PREFIX + name, choice);
  } catch {
    // the guess holds until the page is left
  }
}
