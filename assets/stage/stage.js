/**
 * The stage as a Streamlit component (v2): mounts one panel a root and hands it every update.
 *
 * Streamlit may run a clean-up that belongs to a superseded call while the component is still on the page; the panel is
 * taken down only when its root has really left the document. What is drawn lives in panel.js.
 */

import { Panel } from "./panel.js";

/** @type {WeakMap<Node, Panel>} */
const PANELS = new WeakMap();

/** @param {{data: any, parentElement: any, setStateValue: Function, setTriggerValue: Function}} component */
export default function stage(component) {
  const root = component.parentElement;
  let panel = PANELS.get(root);
  if (!panel || panel.gone) {
    panel = new Panel(root);
    PANELS.set(root, panel);
  }
  panel.update(component);
  return () => queueMicrotask(() => {
    if (!(root.host ?? root).isConnected) panel.destroy();
  });
}
