/**
 * Plotly, loaded once a page from our own server. It draws what stands still; whatever moves is drawn over it.
 */

let loading = null;

/** @param {string} url relative to the page @returns {Promise<any>} */
export function loadPlotly(url) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(url, document.baseURI);
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null;
      reject(new Error("The drawing library could not be loaded."));
    };
    document.head.append(script);
  });
  return loading;
}

/** Plotly puts its rules into the document's head; a shadow root needs a copy, or its SVGs stack. @param {Node} root */
export function adoptPlotlyRules(root) {
  const source = document.getElementById("plotly.js-style-global");
  if (!(root instanceof ShadowRoot) || !source || root.querySelector("style[data-plotly]")) return;
  const style = document.createElement("style");
  style.dataset.plotly = "rules";
  style.textContent = [...source.sheet.cssRules].map((rule) => rule.cssText).join("\n");
  root.append(style);
}
