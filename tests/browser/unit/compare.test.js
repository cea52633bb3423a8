import { Beside, firstPass } from "/assets/stage/beside.js";
import { contrast } from "/assets/stage/compare.js";
import { Fold } from "/assets/stage/fold.js";
import { summarise } from "/assets/stage/summary.js";
import { HEADER, close, equal, madeUpRun, ok, test } from "./check.js";

/** The made-up run, its clock shifted, as a store holds it. */
function storeOf(shift = 0, header = HEADER, state = "complete") {
  const fold = new Fold();
  fold.setHeader(header);
  for (const event of madeUpRun()) {
    const moved = { ...event, t: event.t + shift };
    fold.add(event.k === "step" ? { ...moved, t0: event.t0 + shift, t1: event.t1 + shift } : moved);
  }
  return { fold, state, problem: null, readerNotes: [] };
}

const besideOf = (store) => new Beside({ id: "b", live: false }, store);
const sceneOf = (fold) => ({ end: fold.lastTime, complete: true, boundaries: fold.boundaries(), stops: fold.stops(), tokenTimes: fold.tokenTimes() });
const viewOf = (fold) => ({ fold, summary: summarise(fold) });

test("two runs are aligned at their first prompt pass, whatever waited before it", () => {
  const [main, late] = [storeOf(0), besideOf(storeOf(3))];
  close(firstPass(main.fold), 0.001);
  close(late.shift(main.fold), 3);
  const t = 0.05;
  const { state } = late.at(main.fold, viewOf(main.fold), t);
  equal(state.step.i, main.fold.at(t).step.i, "the same pass at the same instant");
  equal(state.nShown, main.fold.at(t).nShown);
});

test("the clock of a comparison ends with the later run and stops at both runs' moments", () => {
  const main = storeOf(0).fold;
  const long = besideOf(storeOf(0));
  long.store.fold.add({ n: 99, t: 7, k: "note", text: "later" });
  const scene = long.scene(main, sceneOf(main));
  close(scene.end, 7);
  equal(scene.boundaries.length, 2 * main.boundaries().length);
  equal(scene.tokenTimes, [...scene.tokenTimes].sort((a, b) => a - b));
});

test("a comparison is complete when both runs are", () => {
  const main = storeOf(0).fold;
  ok(besideOf(storeOf(0)).scene(main, sceneOf(main)).complete, "both are");
  ok(!besideOf(storeOf(0, HEADER, "growing")).scene(main, sceneOf(main)).complete, "the second still grows");
});

test("a run that has not begun to read is not shifted", () => {
  const empty = besideOf({ fold: new Fold(), state: "loading", problem: null, readerNotes: [] });
  const main = storeOf(0).fold;
  equal(empty.shift(main), 0);
  const { state, view } = empty.at(main, viewOf(main), 1);
  equal([state.phase, view.source, view.summary.ttft_s], ["idle", null, null]);
});

test("the second column tells its own source", () => {
  const [main, other] = [storeOf(0).fold, besideOf(storeOf(0, { ...HEADER, source: "simulated" }))];
  equal(other.at(main, viewOf(main), 0).view.source, "simulated");
});

test("the contrast names the faster machine, and says when models differ", () => {
  const named = (name, model, factor) => {
    const { fold } = storeOf(0, { ...HEADER, devices: [{ name, kind: "cpu" }], model: { name: model } });
    const summary = summarise(fold);
    return { fold, summary: { ...summary, prefill_tok_s: summary.prefill_tok_s * factor, decode_tok_s: summary.decode_tok_s / factor } };
  };
  const said = contrast(named("slow", "m", 1), named("fast", "m", 3));
  equal(said, "Reading: fast is 3.0 times as fast. Writing: slow is 3.0 times as fast.");
  equal(contrast(named("one", "m", 1), named("two", "m", 1)), "Reading: the same speed. Writing: the same speed.");
  ok(contrast(named("one", "m", 1), named("two", "n", 2)).endsWith("They run different models: m and n."), "models");
});

test("the contrast says nothing while a figure is not known", () => {
  const view = viewOf(new Fold());
  equal(contrast(view, view), "");
});
