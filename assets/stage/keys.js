/**
 * The keyboard. No letter reaches Streamlit from here: its own `r` (rerun) and `c` (clear cache) would end the show.
 *
 * In presenter mode the keys hold for the whole page, wherever the focus is, and are those that remote controls send.
 */

const KEYS = {
  " ": (actions) => actions.toggle(),
  ArrowLeft: (actions) => actions.token(-1),
  ArrowRight: (actions) => actions.token(1),
  ArrowUp: (actions) => actions.nudge(1),
  ArrowDown: (actions) => actions.nudge(-1),
  "[": (actions) => actions.phase(-1),
  "]": (actions) => actions.phase(1),
  Home: (actions) => actions.seek(0, true),
  End: (actions) => actions.seek(Infinity, true),
};
const both = (step) => ({ ArrowLeft: (a) => step(a, -1), PageUp: (a) => step(a, -1), ArrowRight: (a) => step(a, 1), PageDown: (a) => step(a, 1), Escape: (a) => a.leave() });
/** By what is presented: the stage, idea by idea, or a chapter, one a screen. */
const PRESENTING = {
  stage: { " ": (actions) => actions.toggle(), ...both((actions, direction) => actions.idea(direction)) },
  chapter: both((actions, direction) => actions.step(direction)),
};
const OWN_KEYS = {
  BUTTON: [" "],
  A: [" "],
  TEXTAREA: [" ", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"],
  INPUT: [" ", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"],
  SELECT: [" ", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"],
};

/**
 * @param {HTMLElement} root @param {import("./controls.js").Actions} actions
 * @param {() => "stage" | "chapter" | null} presenting what presenter mode shows, null outside it
 * @returns {() => void}
 */
export function installKeys(root, actions, presenting) {
  const act = (event, table) => {
    const target = event.composedPath()[0];
    const wish = table[event.key];
    if (!wish || OWN_KEYS[target.tagName]?.includes(event.key) || target.role === "slider" || target.isContentEditable) return;
    event.preventDefault();
    wish(actions);
  };
  const inside = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    act(event, PRESENTING[presenting()] ?? KEYS);
  };
  const outside = (event) => {
    const table = PRESENTING[presenting()];
    if (table && !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey) act(event, table);
  };
  root.addEventListener("keydown", inside);
  document.addEventListener("keydown", outside);
  return () => {
    root.removeEventListener("keydown", inside);
    document.removeEventListener("keydown", outside);
  };
}
