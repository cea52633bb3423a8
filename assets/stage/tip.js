/**
 * Where a figure comes from, on hover and on keyboard focus alike: one tip a stage, for every element with `data-tip`.
 */

import { h, setText } from "./dom.js";

const MARGIN_PX = 8;

/** @param {HTMLElement} root @returns {() => void} takes the tip away again */
export function installTip(root) {
  const tip = h("div", { class: "tip", role: "tooltip", id: "stage-tip", hidden: true });
  root.append(tip);
  let owner = null;
  const show = (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (!target || target === owner) return;
    hide();
    owner = target;
    setText(tip, target.dataset.tip);
    tip.hidden = false;
    target.setAttribute("aria-describedby", "stage-tip");
    place(tip, target, root);
  };
  const hide = () => {
    owner?.removeAttribute("aria-describedby");
    owner = null;
    tip.hidden = true;
  };
  const leave = (event) => owner && !owner.contains(event.relatedTarget) && hide();
  const escape = (event) => event.key === "Escape" && hide();
  const listeners = [["pointerover", show], ["focusin", show], ["pointerout", leave], ["focusout", leave], ["keydown", escape]];
  for (const [name, listener] of listeners) root.addEventListener(name, listener);
  return () => {
    for (const [name, listener] of listeners) root.removeEventListener(name, listener);
    tip.remove();
  };
}

function place(tip, target, root) {
  const [box, frame] = [target.getBoundingClientRect(), root.getBoundingClientRect()];
  const left = Math.min(Math.max(box.left - frame.left, 0), Math.max(0, frame.width - tip.offsetWidth - MARGIN_PX));
  const below = box.bottom - frame.top + MARGIN_PX;
  const fits = below + tip.offsetHeight <= frame.height;
  tip.style.left = `${left}px`;
  tip.style.top = `${fits ? below : Math.max(0, box.top - frame.top - tip.offsetHeight - MARGIN_PX)}px`;
}
