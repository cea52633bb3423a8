/**
 * The fold: what was known of a run at time t. Pure, no page, no clock.
 *
 * Events are put into one series a kind as they arrive; `at(t)` answers by binary search and running sums, so a seek
 * costs as much as the next frame and a ten-minute trace as little as a short one. A pass's figures hold from its t0 to
 * its t1 and are never interpolated. Figures follow the definitions of docs/trace.md, as telemetry/summary.py does.
 *
 * Not covered: several prompts side by side. The sequence of the first request is the one whose text is told; the
 * figures of a pass are those of the whole pass.
 */

import { Series } from "./series.js";
import { bytesOf, computeCeiling, emptySums, phaseAverages, perSecond, phaseOf, ratio, regime, shareOf, tokensOf, withStep } from "./sums.js";
import { TokenList, standstillsOf } from "./tokenlist.js";

const HELD_AT_LEAST_S = 0.25; // after a pass ended its figures stand for gaps up to this long
const HELD_LENGTHS = 4; // or this many times its own length
const startOf = (step) => step.t0;

export class Fold {
  constructor() {
    /** @type {any} */ this.header = null;
    this.requests = new Series();
    this.phases = new Series();
    this.steps = new Series();
    this.tokens = new Series();
    this.notes = new Series();
    this.metas = new Series();
    this.ends = new Series();
    /** @type {Map<string, Series>} */ this.samples = new Map();
    /** @type {import("./sums.js").Sums[]} after each pass */ this.sums = [];
    /** @type {number[]} prompt tokens read, after each pass */ this.lits = [];
    /** @type {TokenList | null} */ this.told = null;
    this.nTold = 0;
    this.lastTime = 0;
    this.version = 0; // grows with every change: what has been drawn can be told from what is new
  }

  /** @param {any} header */
  setHeader(header) {
    this.rawHeader = header;
    this.#mergeHeader();
  }

  /** @param {any} event cleaned by wire.js */
  add(event) {
    const series = event.k === "sample" ? this.#sampleSeries(event) : SERIES_OF[event.k] && this[SERIES_OF[event.k]];
    if (!series) return;
    series.add(event);
    if (event.k === "meta") this.#mergeHeader();
    this.lastTime = Math.max(this.lastTime, event.t);
    this.version += 1;
  }

  /** The sequence whose text is told, null while none is known. */
  get seq() { return this.requests.items[0]?.seq ?? this.tokens.items[0]?.seq ?? null; }

  /** The event that ends the whole run, if it came. */
  get end() { return this.ends.items.find((end) => end.seq === null || end.seq === undefined) ?? null; }

  /** Averages of a phase over all that is known, whatever the clock says. */
  averages(phase) {
    return phaseAverages(this.sumsAtEnd(), phase, this.header?.ceilings);
  }

  /** Moments at which phases start, rising. */
  boundaries() { return this.phases.items.filter((p) => this.#concerns(p)).map((p) => p.t); }

  /** Of these, the ones between the first reading and the end: where a replay that pauses by itself does so. */
  stops() {
    const starts = this.phases.items.filter((p) => this.#concerns(p));
    return starts.slice(starts.findIndex((p) => p.phase === "prefill") + 1).filter((p) => p.phase !== "done").map((p) => p.t);
  }

  tokenTimes() { return this.tokenList().timed.map((token) => token.t); }

  /** Phases as spans, the last one open to the newest event. */
  spans() {
    const starts = this.phases.items.filter((p) => this.#concerns(p));
    return starts.map((p, i) => ({ phase: p.phase, t0: p.t, t1: starts[i + 1]?.t ?? this.lastTime }));
  }

  /** @param {number} t */
  at(t) {
    this.#catchUp();
    const running = this.steps.lastUntil(t, startOf) ?? null;
    const nDone = this.steps.countUntil(t);
    const sums = this.sums[nDone - 1] ?? emptySums();
    const phase = this.#phaseAt(t, running);
    const step = running && this.#stepFigures(running, t);
    const nTimed = this.told.timedAt(t);
    const request = this.requests.items.find((r) => r.seq === this.seq) ?? null;
    return {
      t,
      phase,
      phaseSince: this.#lastPhase(t)?.t ?? null,
      request: request && request.t <= t ? request : null,
      prompt: this.#promptAt(nDone, running, t),
      nShown: this.told.shownAt(t),
      step,
      averages: {
        prefill: phaseAverages(sums, "prefill", this.header?.ceilings),
        decode: phaseAverages(sums, "decode", this.header?.ceilings),
      },
      tokensPerS: this.#rateNow(step, nTimed),
      ttft_s: this.told.firstAfter(request?.t ?? null, nTimed),
      tpot_s: this.told.meanGap(nTimed),
      kv: this.#kvAt(nDone),
      samples: this.#samplesAt(t),
      notes: this.notes.items.slice(0, this.notes.countUntil(t)),
      end: this.ends.items.find((e) => e.t <= t && e.seq === null) ?? this.ends.lastUntil(t) ?? null,
    };
  }

  /** The tokens of the told sequence. */
  tokenList() {
    this.#catchUp();
    return this.told;
  }

  /** Running sums after the last pass that is known. */
  sumsAtEnd() {
    this.#catchUp();
    return this.sums[this.sums.length - 1] ?? emptySums();
  }

  #concerns(event) { return event.seq === null || event.seq === undefined || event.seq === this.seq; }

  #lastPhase(t) {
    for (let i = this.phases.countUntil(t) - 1; i >= 0; i -= 1) {
      if (this.#concerns(this.phases.items[i])) return this.phases.items[i];
    }
    return null;
  }

  #phaseAt(t, running) {
    if (this.end && this.end.t <= t) return "done";
    const phase = this.#lastPhase(t)?.phase;
    if (phase) return phase;
    if (running) return phaseOf(running);
    return this.requests.countUntil(t) ? "waiting" : "idle";
  }

  #stepFigures(step, t) {
    const time = step.t1 - step.t0;
    const phase = phaseOf(step);
    const bytes = bytesOf(step);
    const flopsPerS = step.flops === null ? null : perSecond(step.flops, time);
    const bytesPerS = bytes === null ? null : perSecond(bytes, time);
    const compute = shareOf(flopsPerS, computeCeiling(this.header?.ceilings, phase));
    const memory = shareOf(bytesPerS, this.header?.ceilings?.memory);
    return {
      i: step.i, t0: step.t0, t1: step.t1, time_s: time, phase, repeat: step.repeat, role: step.role, timing: step.timing,
      tokens: tokensOf(step), flops: step.flops, bytes, parts: step.bytes, flopsPerS, bytesPerS, compute, memory,
      intensity: step.flops === null || bytes === null ? null : ratio(step.flops, bytes),
      regime: regime(compute, memory),
      running: t < step.t1,
      held: t <= step.t1 + Math.max(HELD_AT_LEAST_S, HELD_LENGTHS * time),
    };
  }

  #promptAt(nDone, running, t) {
    const total = this.requests.items.find((r) => r.seq === this.seq)?.n_prompt_tokens ?? null;
    const lit = this.lits[nDone - 1] ?? 0;
    const row = running && t < running.t1 ? running.rows.find((r) => r[0] === this.seq && r[3] === "prefill") : null;
    return { total, lit, inFlight: row ? { from: row[2], to: row[2] + row[1] } : null };
  }

  /** Of the pass while reading, of the last gap between tokens while writing. */
  #rateNow(step, nTimed) {
    if (step?.phase === "prefill") return perSecond(step.tokens, step.time_s);
    return ratio(1, this.told.lastGap(nTimed));
  }

  #kvAt(nDone) {
    const step = this.steps.items[nDone - 1];
    const tokens = step ? step.rows.reduce((sum, row) => sum + row[2] + row[1], 0) : 0;
    const perToken = this.header?.kv_bytes_per_token ?? null;
    const capacity = this.header?.kv_capacity_tokens ?? null;
    return { tokens, capacity, bytes: perToken === null ? null : tokens * perToken, share: capacity ? tokens / capacity : null };
  }

  #samplesAt(t) {
    const found = [];
    for (const [key, series] of this.samples) {
      const sample = series.lastUntil(t);
      if (sample) found.push({ key, sensor: sample.sensor, metric: sample.metric, device: sample.device, value: sample.value, reason: sample.reason ?? null, age_s: t - sample.t1 });
    }
    return found;
  }

  #sampleSeries(sample) {
    const key = `${sample.sensor}/${sample.metric}/${sample.device}`;
    if (!this.samples.has(key)) this.samples.set(key, new Series());
    return this.samples.get(key);
  }

  /** Late facts overwrite by name, whenever they came: they are facts about the whole run. */
  #mergeHeader() {
    const header = { ...this.rawHeader };
    for (const meta of this.metas.items) {
      const { format, version, id, ...fields } = meta.fields;
      Object.assign(header, fields);
    }
    this.header = header;
    this.version += 1;
  }

  /** Brings what is derived up to date, from the first change on. */
  #catchUp() {
    if (this.caughtUp === this.version) return;
    const seq = this.seq;
    const anew = !this.told || this.told.seq !== seq;
    const from = anew ? 0 : this.steps.dirty;
    const repeats = anew || this.steps.items.slice(from).some((step) => step.repeat);
    for (let i = from; i < this.steps.length; i += 1) {
      const step = this.steps.items[i];
      this.sums[i] = withStep(this.sums[i - 1] ?? emptySums(), step, seq);
      this.lits[i] = Math.max(this.lits[i - 1] ?? 0, ...step.rows.map((r) => (r[0] === seq && r[3] === "prefill" ? r[2] + r[1] : 0)));
    }
    this.steps.dirty = this.steps.length;
    this.#tellTokens(seq, anew || repeats);
    this.caughtUp = this.version;
  }

  #tellTokens(seq, anew) {
    const inOrder = !anew && this.tokens.dirty >= this.nTold;
    if (!inOrder) {
      this.told = new TokenList(seq, standstillsOf(this.steps.items));
      this.nTold = 0;
    }
    for (; this.nTold < this.tokens.length; this.nTold += 1) this.told.add(this.tokens.items[this.nTold]);
    this.tokens.dirty = this.tokens.length;
  }
}

const SERIES_OF = { request: "requests", phase: "phases", step: "steps", token: "tokens", note: "notes", meta: "metas", end: "ends" };
