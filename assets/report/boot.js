/**
 * Mounts the stage in a report as the live page does: the same modules, with the trace that the report carries in place
 * of a server's address. Nothing is asked of any network, and there is nobody to speak back to.
 */

import stage from "./stage.js";

const run = JSON.parse(document.getElementById("run").textContent);
const lines = new Blob([document.getElementById("trace").textContent], { type: "application/x-ndjson" });
const url = URL.createObjectURL(lines);

const save = document.getElementById("save");
save.href = url;
save.download = `siliconscope-${run.id}.jsonl`;
save.hidden = false;

const nobody = () => {};
const parentElement = document.getElementById("stage").attachShadow({ mode: "open" });
stage({ data: { density: "lesson", run: { ...run, live: false, url } }, parentElement, setStateValue: nobody, setTriggerValue: nobody });
