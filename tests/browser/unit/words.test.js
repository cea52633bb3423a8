import * as format from "/assets/stage/format.js";
import { sourceOf } from "/assets/stage/badge.js";
import { Banner } from "/assets/stage/notes.js";
import { buttonFor } from "/assets/stage/runbutton.js";
import { luminance, readTheme, toRgb } from "/assets/stage/theme.js";
import { denominatorWords, headline, limitNames, regimeWords, runName } from "/assets/stage/words.js";
import { HEADER, equal, ok, test } from "./check.js";

const plain = (text) => text.replaceAll("\u202f", " ");
const ready = { install: null, worker: { state: "ready" }, busy: null };
const label = (status, run = null, growing = false) => buttonFor(status, run, growing).label;

test("giga is a thousand million, and zeros stay", () => {
  equal(plain(format.bytes(537919488)), "538 MB");
  equal(plain(format.bytes(1 << 30)), "1.07 GB");
  equal(plain(format.bytesPerSecond(69e9)), "69.0 GB/s");
  equal(plain(format.bytes(999.9e6)), "1.00 GB", "rounding carries the prefix along");
});

test("times choose their unit", () => {
  equal(plain(format.seconds(0.0011, 2)), "1.1 ms");
  equal(plain(format.seconds(0.0009999, 2)), "1.0 ms");
  equal(plain(format.seconds(12e-6, 2)), "12 µs");
  equal(plain(format.seconds(2.2101)), "2.21 s");
});

test("shares keep what is small and name what is nearly nothing", () => {
  equal([0.794, 0.035, 0.0996, 0.0004, 0, 1.12].map((share) => plain(format.percent(share))), ["79 %", "3.5 %", "10 %", "< 0.1 %", "0 %", "112 %"]);
});

test("unknown is a dash, whatever the unit", () => {
  for (const of of [format.bytes, format.seconds, format.percent, format.rate, format.times, format.flopsPerSecond, format.intensity, format.clock]) {
    for (const unknown of [null, undefined, NaN, Infinity]) equal(of(unknown), format.DASH, of.name);
  }
});

test("how many times, without false digits", () => {
  equal([24.3, 2.41, 131.7, 1251].map(format.times), ["24 times", "2.4 times", "132 times", "1,251 times"]);
});

test("two figures name a unit once where it is the same", () => {
  equal(plain(format.pair(format.flopsPerSecond(315e9), format.flopsPerSecond(16.8e9))), "315 | 16.8 GFLOP/s");
  equal(plain(format.pair(format.bytesPerSecond(332e9), format.bytesPerSecond(3.24e12))), "332 GB/s | 3.24 TB/s");
  equal(plain(format.pair(format.DASH, format.bytesPerSecond(1e9))), "– | 1.00 GB/s");
});

test("the headline compares in one unit", () => {
  const { reading, writing, contrast } = headline(0.0011, 0.0267);
  equal([reading, writing, contrast].map(plain), ["1.1 ms a token.", "27 ms a token.", "24 times slower, on the same chip."]);
  equal(headline(0.001, null).contrast, null);
  ok(headline(0.02, 0.01).contrast.includes("faster"), "the contrast may point the other way");
  ok(headline(0.01, 0.01).contrast.startsWith("The same"), "or not at all");
});

test("an overhead-bound pass is never called memory-bound", () => {
  const words = (device, options) => plain(regimeWords({ name: "overhead", share: 0.43 }, { devices: [device], engine: { options } }));
  const gpu = { kind: "cuda", name: "NVIDIA H200" };
  ok(words({ kind: "cpu", name: "a CPU" }, {}).startsWith("overhead-bound: the time goes between the operations, not to memory; 43 % of"), "on a CPU");
  ok(words(gpu, { cuda_graph: false }).startsWith("overhead-bound: the GPU waits for Python, not for memory;"), "launched one by one");
  ok(!words(gpu, { cuda_graph: true }).includes("Python"), "a graph needs no Python");
});

test("a CPU has a memory bus and no tensor cores", () => {
  equal(limitNames(HEADER), { compute: "Compute", memory: "Memory bus" });
  equal(limitNames({ devices: [{ kind: "cuda", name: "NVIDIA H200" }] }).memory, "Memory (HBM)");
  equal(limitNames({ devices: [{ kind: "cuda", name: "NVIDIA GeForce RTX 4090" }] }).memory, "Memory (VRAM)");
});

test("a run of another path and a cold run are marked as such", () => {
  const run = { model: { name: "toy" }, precision: "fp32" };
  equal(runName({ ...run, engine: { path: "native", cold: false } }), "toy, fp32");
  equal(runName({ ...run, engine: { path: "generic path", cold: true } }), "toy, fp32, generic path, first run after loading");
  equal(runName({ ...run, model: {} }), "a model, fp32", "a simulation has no engine");
});

test("a missing ceiling is said, not drawn", () => ok(denominatorWords(null).includes("not known"), "a reason"));

test("a recording without its end says so in every density", () => {
  const banner = new Banner();
  const said = (fold, storeState) => (banner.update({ end: null }, { storeState, fold, run: {} }), banner.el.hidden ? null : banner.el.textContent);
  ok(said({ header: HEADER, end: null }, "complete").includes("ends early"), banner.el.textContent);
  equal(said({ header: HEADER, end: null }, "growing"), null, "a run that goes on has no end yet");
  equal(said({ header: HEADER, end: { reason: "length" } }, "complete"), null);
});

test("whatever is replayed is recorded, and a simulation always says so", () => {
  equal([sourceOf(HEADER, false), sourceOf(HEADER, true)], ["live", "recorded"]);
  equal(sourceOf({ ...HEADER, source: "simulated" }, true), "simulated");
  equal(sourceOf({ ...HEADER, source: "remote" }, false), "remote");
});

test("the button says what the machine can do", () => {
  equal(buttonFor(ready, null, false), { label: "Run on this machine", action: "run", note: "" });
  equal(plain(label({ ...ready, install: { state: "running", share: 0.43, bytes_total: 1.2e9 } })), "Installing: 43 % of 1.20 GB");
  equal(label({ ...ready, worker: { state: "loading", share: 0.5 } }), "Loading the model, 50 %");
  equal(label({ ...ready, worker: { state: "measuring" } }), "Measuring this machine");
  ok(buttonFor({ ...ready, worker: { state: "failed", message: "No torch." } }, null, false).note === "No torch.", "the reason stands beside it");
});

test("a model that could not be loaded bars no other", () => {
  const failed = (models) => buttonFor({ ...ready, worker: { state: "failed", message: "It is cut short.", models } }, null, false);
  equal(failed([{ name: "torn" }, { name: "whole" }]), { label: "Run on this machine", action: "run", note: "It is cut short." });
  equal(failed([{ name: "torn" }]).action, null);
});

test("what went wrong with the last run's file stands beside the button", () => {
  equal(buttonFor({ ...ready, message: "The disk is full." }, null, false).note, "The disk is full.");
});

test("who started the run can stop it, everybody else watches", () => {
  const busy = { ...ready, worker: { state: "running" }, busy: { run: "a" } };
  equal(buttonFor(busy, { id: "a", key: "k" }, true).action, "stop");
  equal(buttonFor(busy, { id: "a", key: null }, true).action, null);
  equal(buttonFor(busy, { id: "a", key: "k" }, false), { label: "Run on this machine", action: null, note: "" }, "over, and the machine not yet free");
  equal(buttonFor(busy, { id: "b", key: null }, false).action, "watch");
});

test("every colour of text stands out by 4.5 to 1 on both grounds of both themes", () => {
  const grounds = { light: ["#ffffff", "#f0f2f6", "#31333f"], dark: ["#0e1117", "#262730", "#fafafa"] };
  for (const [name, [ground, raised, text]] of Object.entries(grounds)) {
    const host = document.createElement("div");
    host.style.cssText = `--st-background-color:${ground};--st-secondary-background-color:${raised};--st-text-color:${text}`;
    document.body.append(host);
    const theme = readTheme(host);
    host.remove();
    equal(theme.dark, name === "dark");
    for (const ink of ["text", "muted", "reading", "writing", "compute", "memory"]) {
      for (const paper of ["ground", "raised"]) {
        const [a, b] = [luminance(toRgb(theme[ink])), luminance(toRgb(theme[paper]))].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        ok(contrast >= 4.5, `${name}: ${ink} on ${paper} has ${contrast.toFixed(2)}`);
      }
    }
  }
});
