/**
 * The keyboard. No letter reaches Streamlit from here: its own `r` (rerun) and `c` (clear cache) would end the show.
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
const OWN_KEYS = { BUTTON: [" "], INPUT: [" ", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"], SELECT: [" ", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"] };

/** @param {HTMLElement} root @param {import("./controls.js").Actions} actions @returns {() => void} */
export function installKeys(root, actions) {
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const target = event.composedPath()[0];
    if (OWN_KEYS[target.tagName]?.includes(event.key)) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(actions);
  };
  root.addEventListener("keydown", onKey);
  return () => root.removeEventListener("keydown", onKey);
}
