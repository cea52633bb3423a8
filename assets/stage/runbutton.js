/**
 * The one button, and the sentence beside it. What it says follows what the server says of itself.
 */

import { h, setAttribute, setText } from "./dom.js";
import { bytes } from "./format.js";

const RUN = "Run on this machine";

/**
 * @param {any} status the last message of api/status, null before the first
 * @param {{id: string, key?: string | null} | null} run what the stage shows
 * @param {boolean} growing whether that run still grows
 * @returns {{label: string, action: "run" | "watch" | "stop" | null, note: string}} action null: disabled
 */
export function buttonFor(status, run, growing) {
  if (!status) return waiting(RUN, "Asking the server what this machine can do.");
  const { install, worker, busy } = status;
  if (busy?.run) return busyButton(busy.run, run, growing);
  if (install?.state === "running") return waiting(installLabel(install), install.doing ?? "");
  if (install?.state === "failed") return waiting(RUN, install.message ?? "The live set could not be installed; recordings play.");
  if (!worker) return waiting(RUN, install?.message ?? "Live runs are not installed here; recordings play.");
  return workerButton(worker, status.message);
}

function workerButton(worker, message) {
  const share = Number.isFinite(worker.share) ? `, ${Math.round(worker.share * 100)} %` : "";
  switch (worker.state) {
    case "ready": return { label: RUN, action: "run", note: message ?? worker.message ?? "" };
    case "idle":
    case "starting": return waiting("Starting the engine", worker.doing ?? "");
    case "loading": return waiting(`Loading the model${share}`, worker.doing ?? "");
    case "measuring": return waiting(`Measuring this machine${share}`, worker.doing ?? "");
    case "running": return waiting("Running", worker.doing ?? "");
    case "failed": return { label: RUN, action: worker.models?.length > 1 ? "run" : null, note: worker.message ?? "" }; // another model may do
    default: return waiting(RUN, worker.message ?? "The engine does not answer; recordings play.");
  }
}

function busyButton(busyRun, run, growing) {
  if (run?.id !== busyRun) return { label: "Watch the run", action: "watch", note: "Somebody's run is on the machine." };
  if (run.key) return growing ? { label: "Stop", action: "stop", note: "" } : waiting(RUN, "");
  return waiting("Watching the run", "Somebody's run is on the machine; the button tells when it is free.");
}

function installLabel(install) {
  const total = install.bytes_total ? ` of ${bytes(install.bytes_total)}` : "";
  if (Number.isFinite(install.share)) return `Installing: ${Math.round(install.share * 100)} %${total}`;
  return install.bytes_done ? `Installing: ${bytes(install.bytes_done)}${total}` : "Installing";
}

const waiting = (label, note) => ({ label, action: null, note });

export class RunButton {
  /** @param {(action: "run" | "watch" | "stop") => void} onAction */
  constructor(onAction) {
    this.button = h("button", { class: "run", type: "button", onclick: () => this.action && onAction(this.action) });
    this.note = h("span", { class: "run-note", role: "status" });
    this.el = h("div", { class: "runbox" }, this.note, this.button);
  }

  layout() {}

  update(_state, view) {
    this.el.hidden = !view.served; // a report has no server behind it
    const { label, action, note } = buttonFor(view.status, view.run, !view.scene.complete);
    this.action = action;
    setText(this.button, label);
    setAttribute(this.button, "aria-disabled", action ? null : "true");
    setAttribute(this.button, "data-action", action ?? "none");
    setText(this.note, view.message ?? note);
    setAttribute(this.note, "data-from", view.message ? "page" : "server");
  }
}
