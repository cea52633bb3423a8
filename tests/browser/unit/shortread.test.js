import { Fold } from "/assets/stage/fold.js";
import { shortReadWords } from "/assets/stage/shortread.js";
import { HEADER, equal, madeUpRun, ok, test } from "./check.js";

const COUNTER = { sensor: "gpm", metric: "tensor_active", unit: "fraction", reason: null };

function foldOf(events, header = {}) {
  const fold = new Fold();
  fold.setHeader({ ...HEADER, ...header });
  events.forEach((event) => fold.add(event));
  return fold;
}

test("a reading under 300 ms says how it can be seen", () => {
  const words = shortReadWords(foldOf(madeUpRun(2)));
  ok(words.startsWith("Reading took 200") && words.includes("0.02×"), words);
  ok(!words.includes("Counters"), "nobody counts here");
});

test("with counters it names the stretch", () => {
  ok(shortReadWords(foldOf(madeUpRun(2), { sensors: [COUNTER] })).includes("stretch"), "counters are there");
  const absent = { ...COUNTER, reason: "No GPU." };
  ok(!shortReadWords(foldOf(madeUpRun(2), { sensors: [absent] })).includes("stretch"), "a counter that found nothing is none");
});

test("a stretched reading says that repeats enter no figure", () => {
  const events = madeUpRun(2);
  const repeated = { ...events.find((event) => event.k === "step"), n: 99, repeat: true };
  ok(shortReadWords(foldOf([...events, repeated], { sensors: [COUNTER] })).includes("stretched"), "it was repeated");
});

test("a long reading, or none, needs no words", () => {
  equal(shortReadWords(foldOf(madeUpRun(4))), "");
  equal(shortReadWords(foldOf([])), "");
});

test("a replay stops between the first reading and the end", () => {
  const fold = foldOf(madeUpRun(2));
  equal(fold.stops().map((t) => t.toFixed(3)), ["0.201"]);
  equal(fold.boundaries().length, 3);
});
