/**
 * The second run of a comparison, on the first one's clock: the two are aligned at the start of their first prompt pass, so
 * what waited before it is left out of the race. It keeps no clock of its own and draws nothing.
 */

import { sourceOf } from "./badge.js";
import { openRun } from "./store.js";
import { summarise } from "./summary.js";
import { phaseOf } from "./sums.js";

/** When a run began to read, on its own clock; null while that is not known. @param {import("./fold.js").Fold} fold */
export const firstPass = (fold) => fold.steps.items.find((step) => phaseOf(step) === "prefill")?.t0 ?? null;

export class Beside {
  /** @param {{id: string, live: boolean}} run @param {import("./store.js").RunStore} [store] */
  constructor(run, store = openRun(run)) {
    this.run = run;
    this.store = store;
  }

  get fold() { return this.store.fold; }

  get complete() { return this.store.state === "complete" || this.store.state === "failed"; }

  get loading() { return this.store.state === "loading" && !this.run.live; }

  /** What tells one instant of its store from another. */
  get key() { return `${this.fold.version}|${this.complete}`; }

  /** Seconds by which its first pass stands later on its own clock than the first run's does on its. */
  shift(main) {
    const [own, other] = [firstPass(this.fold), firstPass(main)];
    return own === null || other === null ? 0 : own - other;
  }

  /** What the player may know of both runs, on the first one's clock. @param {import("./player.js").Scene} scene */
  scene(main, scene) {
    const shift = this.shift(main);
    const merged = (a, b) => [...a, ...b.map((t) => t - shift).filter((t) => t >= 0)].sort((x, y) => x - y);
    return {
      end: Math.max(scene.end, this.fold.lastTime - shift),
      complete: scene.complete && this.complete,
      boundaries: merged(scene.boundaries, this.fold.boundaries()),
      stops: merged(scene.stops, this.fold.stops()),
      tokenTimes: merged(scene.tokenTimes, this.fold.tokenTimes()),
    };
  }

  /** State and view of this run while the first one's are `view`, at time `t` of the first one's clock. */
  at(main, view, t) {
    const { fold, store, run } = this;
    if (this.summaryVersion !== fold.version) [this.summaryVersion, this.summary] = [fold.version, summarise(fold)];
    return {
      state: fold.at(t + this.shift(main)),
      view: {
        ...view, fold, run, summary: this.summary, source: sourceOf(fold.header, store.replayed),
        averages: { prefill: fold.averages("prefill"), decode: fold.averages("decode") },
        storeState: store.state, problem: store.problem, readerNotes: store.readerNotes, beside: null,
      },
    };
  }
}
