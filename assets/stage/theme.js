/**
 * Colours: text and ground are Streamlit's (its CSS variables reach into the component), the two phases have one hue
 * each, chosen for contrast on light and on dark ground. A hue always stands for a phase, never for a device.
 */

const LIGHT = { reading: "#1d4ed8", readingSoft: "#bfd3ff", writing: "#b34700", writingSoft: "#ffd9b8", compute: "#0f766e", memory: "#86198f" };
const DARK = { reading: "#8ab4ff", readingSoft: "#23407e", writing: "#ffb066", writingSoft: "#6b3d12", compute: "#5eead4", memory: "#f0abfc" };

/**
 * @typedef {{text: string, ground: string, raised: string, line: string, muted: string, font: string, dark: boolean, key: string,
 *   reading: string, readingSoft: string, writing: string, writingSoft: string, compute: string, memory: string}} Theme
 */

/** @param {Element} host an element that inherits Streamlit's variables @returns {Theme} */
export function readTheme(host) {
  const style = getComputedStyle(host);
  const variable = (name, fallback) => style.getPropertyValue(`--st-${name}`).trim() || fallback;
  const ground = variable("background-color", "#ffffff");
  const dark = luminance(toRgb(ground)) < 0.4;
  const text = variable("text-color", dark ? "#fafafa" : "#31333f");
  const theme = {
    text,
    ground,
    raised: variable("secondary-background-color", dark ? "#262730" : "#f0f2f6"),
    line: mix(text, ground, 0.24),
    muted: mix(text, ground, 0.74),
    font: variable("font", "") || "Source Sans, Helvetica, Arial, sans-serif",
    dark,
    ...(dark ? DARK : LIGHT),
  };
  return { ...theme, key: JSON.stringify(theme) };
}

/** Hands the theme to the style sheet. @param {HTMLElement} root @param {Theme} theme */
export function applyTheme(root, theme) {
  for (const name of ["text", "ground", "raised", "line", "muted", "reading", "writing", "compute", "memory"]) {
    root.style.setProperty(`--${name}`, theme[name]);
  }
  root.style.setProperty("--reading-soft", theme.readingSoft);
  root.style.setProperty("--writing-soft", theme.writingSoft);
  root.style.setProperty("--font", theme.font);
  root.dataset.theme = theme.dark ? "dark" : "light";
}

/** The hue of a phase. @param {Theme} theme @param {string} phase */
export const phaseColour = (theme, phase) => (phase === "prefill" ? theme.reading : theme.writing);

/** Any CSS colour as [r, g, b], by asking the browser. @returns {number[]} */
export function toRgb(colour) {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

function mix(above, below, share) {
  const [a, b] = [toRgb(above), toRgb(below)];
  return `rgb(${a.map((channel, i) => Math.round(channel * share + b[i] * (1 - share))).join(", ")})`;
}

/** Relative luminance by WCAG 2. @param {number[]} rgb */
export function luminance(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
