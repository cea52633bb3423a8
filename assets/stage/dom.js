/**
 * The few ways in which the stage touches the page. Text is always a text node: what a model wrote is shown, never run.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children; strings become text nodes, null children are left out.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string | null)} children
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Sets text only when it changed: layout is spared. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or (null) removes an attribute, only when it changed. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** A canvas fitted to its box in device pixels; returns its context scaled to CSS pixels, null while it has no size. */
export function fitCanvas(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return null;
  const scale = window.devicePixelRatio || 1;
  const [w, hgt] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== hgt) [canvas.width, canvas.height] = [w, hgt];
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return { context, width, height };
}
