/**
 * The tokens of one sequence as they became known: its text, and its times on the clock that stands still while passes
 * are repeated for the sake of slow counters (docs/trace.md).
 *
 * Rejected drafts are no tokens of the text. Counts may be unknown; then so is every figure that needs their number.
 */

import { measurable } from "./sums.js";

export class TokenList {
  /** @param {number | null} seq @param {[number, number][]} standstills */
  constructor(seq, standstills) {
    this.seq = seq;
    this.standstills = standstills;
    /** @type {any[]} every token that stands in the text */ this.told = [];
    /** @type {{t: number, clock_s: number, count: number | null, sum: number | null}[]} those that carry tokens */
    this.timed = [];
  }

  add(token) {
    if (token.seq !== this.seq || token.verdict === "rejected") return;
    this.told.push(token);
    if (token.count === 0) return;
    const before = this.timed.length ? this.timed[this.timed.length - 1].sum : 0;
    const sum = token.count === null || before === null ? null : before + token.count;
    this.timed.push({ t: token.t, clock_s: this.clockOf(token.t), count: token.count, sum });
  }

  clockOf(t) { return runningTime(t, this.standstills); }

  /** How many of the told tokens were known at t. */
  shownAt(t) { return countUntil(this.told, t); }

  /** The timed ones known at t: how many. */
  timedAt(t) { return countUntil(this.timed, t); }

  /** First token - arrival. @param {number | null} request_t @param {number} nTimed */
  firstAfter(request_t, nTimed) {
    if (request_t === null || nTimed === 0) return null;
    const wait_s = this.timed[0].clock_s - this.clockOf(request_t);
    return wait_s >= 0 ? wait_s : null;
  }

  /** (last - first) / (n - 1) over the first `nTimed`. @param {number} nTimed */
  meanGap(nTimed) {
    const [first, last] = [this.timed[0], this.timed[nTimed - 1]];
    if (!last || last.sum === null || last.sum < 2 || !measurable(last.clock_s - first.clock_s)) return null;
    return (last.clock_s - first.clock_s) / (last.sum - 1);
  }

  /** The gap that ended in the last of the first `nTimed`, for one of its tokens. */
  lastGap(nTimed) {
    const [before, last] = [this.timed[nTimed - 2], this.timed[nTimed - 1]];
    return before && last.count ? (last.clock_s - before.clock_s) / last.count : null;
  }

  /** Gaps that end in exactly one token. */
  gaps() {
    return this.timed.slice(1).flatMap((token, i) => (token.count === 1 ? [token.clock_s - this.timed[i].clock_s] : []));
  }
}

/** Each unbroken run of repeated passes, from its first start to its last end. @param {any[]} steps */
export function standstillsOf(steps) {
  const runs = [];
  let running = null;
  for (const step of [...steps].sort((a, b) => a.t0 - b.t0)) {
    if (!step.repeat) running = null;
    else if (running) running[1] = Math.max(running[1], step.t1);
    else runs.push((running = [step.t0, step.t1]));
  }
  return runs;
}

/** t on a clock that stands still during `standstills`. */
export function runningTime(t, standstills) {
  return standstills.reduce((clock, [start, end]) => (t > start ? clock - (Math.min(t, end) - start) : clock), t);
}

function countUntil(records, t) {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (records[middle].t <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}
