import { Fold } from "/assets/stage/fold.js";
import { summarise } from "/assets/stage/summary.js";
import { HEADER, close, equal, madeUpRun, ok, random, test } from "./check.js";

function foldOf(events, header = HEADER) {
  const fold = new Fold();
  fold.setHeader(header);
  for (const event of events) fold.add(event);
  return fold;
}

/** What the state says, without what differs by identity. */
const told = (fold, t) => JSON.stringify(fold.at(t));

test("before the first event nothing is claimed", () => {
  const state = new Fold().at(0);
  equal([state.phase, state.step, state.nShown, state.ttft_s, state.tpot_s, state.tokensPerS], ["idle", null, 0, null, null, null]);
});

test("a pass holds its own figures from its start to its end", () => {
  const fold = foldOf(madeUpRun());
  const [early, late] = [fold.at(0.002).step, fold.at(0.1).step];
  equal([early.i, late.i], [0, 0]);
  close(early.compute, 30e9 / 0.1 / 400e9, "share of compute");
  equal(early.compute, late.compute, "nothing is interpolated within a pass");
});

test("prompt tokens light up pass by pass, the flying pass apart", () => {
  const fold = foldOf(madeUpRun());
  equal(fold.at(0.05).prompt, { total: 8, lit: 0, inFlight: { from: 0, to: 4 } });
  equal(fold.at(0.15).prompt, { total: 8, lit: 4, inFlight: { from: 4, to: 8 } });
  equal(fold.at(0.5).prompt, { total: 8, lit: 8, inFlight: null });
});

test("TTFT, TPOT and the speed of writing by hand", () => {
  const fold = foldOf(madeUpRun());
  close(fold.at(9).ttft_s, 0.201, "first token - request");
  close(fold.at(9).tpot_s, 0.02, "(last - first) / (n - 1)");
  close(fold.at(9).tokensPerS, 50, "one over the last gap");
  close(fold.at(0.1).tokensPerS, 40, "4 tokens in 0.1 s while reading");
});

test("a figure that a pass lacks is unknown and never zero", () => {
  const events = madeUpRun().map((e) => (e.k === "step" ? { ...e, flops: null, bytes: null } : e));
  const state = foldOf(events).at(0.05);
  equal([state.step.compute, state.step.memory, state.step.intensity, state.step.regime.name], [null, null, null, null]);
  equal(foldOf(events).averages("prefill").compute, null);
});

test("without a ceiling there is a rate and no share", () => {
  const state = foldOf(madeUpRun(), { ...HEADER, ceilings: {} }).at(0.05);
  equal([state.step.compute, state.step.memory], [null, null]);
  close(state.step.flopsPerS, 300e9);
});

test("the regime is named by the larger share, or overhead with what is left", () => {
  const step = foldOf(madeUpRun()).at(0.05).step;
  equal(step.regime.name, "compute");
  const slow = madeUpRun().map((e) => (e.k === "step" ? { ...e, flops: 8e9, bytes: { ...e.bytes, weights: 1e9 } } : e));
  const regime = foldOf(slow).at(0.05).step.regime;
  equal(regime.name, "overhead");
  close(regime.share, 1 - 0.20100080000000001, "1 - larger share", 1e-3);
});

test("a figure does not stand for ever after its pass", () => {
  const fold = foldOf(madeUpRun(1, 1).filter((e) => e.k !== "end" && e.phase !== "done"));
  ok(fold.at(0.2).step.held, "a short gap is bridged");
  ok(!fold.at(5).step.held, "a long one is not");
});

test("repeated passes move the dials and enter no rate", () => {
  const plain = madeUpRun();
  const first = plain.findIndex((e) => e.k === "step");
  const repeat = { ...plain[first], repeat: true, n: 1000, flops: 1e15 };
  const fold = foldOf([...plain, { ...repeat, t0: 0.301, t1: 0.401, t: 0.401 }]);
  close(fold.averages("prefill").flopsPerS, 300e9);
});

test("late header facts are merged by name, never over format or id", () => {
  const fold = foldOf([...madeUpRun(), { n: 99, t: 1, k: "meta", fields: { precision: "bf16", id: "other", load_s: 2 } }]);
  equal([fold.header.precision, fold.header.id, fold.header.load_s], ["bf16", "made-up", 2]);
});

test("a sample is held as a step, with its age", () => {
  const fold = foldOf([...madeUpRun(), { n: 50, t: 0.1, k: "sample", sensor: "cpu", metric: "cpu_busy", device: 0, value: 0.5, t0: 0, t1: 0.1, reason: null }]);
  equal(fold.at(0.05).samples, []);
  close(fold.at(0.3).samples[0].age_s, 0.2);
  equal(fold.at(0.3).samples[0].value, 0.5);
});

test("folding as events arrive equals folding from scratch, at any moment and in any order of arrival", () => {
  for (let seed = 1; seed <= 25; seed += 1) {
    const draw = random(seed);
    const events = madeUpRun(1 + Math.floor(draw() * 4), 1 + Math.floor(draw() * 30));
    const arrival = events.map((e) => [e.t + draw() * 0.4, e]).sort((a, b) => a[0] - b[0]).map(([, e]) => e);
    const growing = new Fold();
    growing.setHeader(HEADER);
    for (const event of arrival) {
      growing.add(event);
      if (draw() < 0.5) growing.at(draw());
    }
    const whole = foldOf(events);
    for (let i = 0; i < 12; i += 1) {
      const t = draw() * 1.2 * whole.lastTime;
      equal(told(growing, t), told(whole, t), `seed ${seed}, t ${t}:`);
    }
  }
});

test("seeking back and forth gives what going forward gave", () => {
  const fold = foldOf(madeUpRun(3, 40));
  const moments = Array.from({ length: 60 }, (_, i) => (i / 59) * fold.lastTime);
  const forward = moments.map((t) => told(fold, t));
  const draw = random(7);
  for (let i = 0; i < 300; i += 1) {
    const at = Math.floor(draw() * moments.length);
    equal(told(fold, moments[at]), forward[at], `t ${moments[at]}:`);
  }
});

test("the state at t knows nothing of what comes after t", () => {
  const events = madeUpRun(3, 20);
  const whole = foldOf(events);
  for (const t of [0.05, 0.1501, 0.302, 0.4, 0.55]) {
    const known = foldOf(events.filter((e) => (e.k === "step" ? e.t0 <= t : e.t <= t)));
    equal(told(whole, t), told(known, t), `t ${t}:`);
  }
});

test("sums agree with a plain loop over the events", () => {
  const events = madeUpRun(4, 25);
  const fold = foldOf(events);
  for (let t = 0; t < fold.lastTime; t += 0.037) {
    const done = events.filter((e) => e.k === "step" && e.t1 <= t && e.rows[0][3] === "decode");
    const time = done.reduce((sum, e) => sum + e.t1 - e.t0, 0);
    const wanted = time > 0 ? done.reduce((sum, e) => sum + e.flops, 0) / time : null;
    close(fold.at(t).averages.decode.flopsPerS, wanted, `t ${t}:`);
    equal(fold.at(t).nShown, events.filter((e) => e.k === "token" && e.t <= t).length);
  }
});

test("a trace of a hundred thousand events is folded at any moment", () => {
  const fold = foldOf(madeUpRun(10, 50_000));
  for (let i = 0; i <= 200; i += 1) fold.at((i / 200) * fold.lastTime);
  equal(fold.at(fold.lastTime).nShown, 50_000);
});

test("the summary of a run without a token is unknown where there is no interval", () => {
  const summary = summarise(foldOf(madeUpRun(1, 1)));
  equal([summary.n_new_tokens, summary.tpot_s, summary.decode_tok_s, summary.itl_p50_s, summary.energy_j], [1, null, null, null, null]);
  equal(summary.end_reason, "length");
});
