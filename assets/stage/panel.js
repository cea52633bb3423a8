/**
 * The mounted stage: reads the clock, asks the fold what was known then, and lets the parts of the chosen density draw it,
 * once a frame. It owns the root element and what the page may read off it (data-*, the spoken summary).
 *
 * Parts are plain objects {el, layout(theme, plotly), update(state, view)}; none of them keeps a clock or an event.
 */

import { sourceOf } from "./badge.js";
import { Beside } from "./beside.js";
import { buildCompare } from "./compare.js";
import { h, setAttribute, setText } from "./dom.js";
import { Fold } from "./fold.js";
import { buildHero } from "./hero.js";
import { installKeys } from "./keys.js";
import { buildLab } from "./lab.js";
import { buildLesson } from "./lesson.js";
import * as clock from "./player.js";
import { adoptPlotlyRules, loadPlotly } from "./plotly.js";
import { buildPresent } from "./present.js";
import { withKey } from "./runkeys.js";
import { openStatus } from "./status.js";
import { openRun } from "./store.js";
import { summarise } from "./summary.js";
import { applyTheme, readTheme } from "./theme.js";
import { installTip } from "./tip.js";
import { announcement } from "./words.js";

const DENSITIES = { hero: buildHero, lesson: buildLesson, lab: buildLab, compare: buildCompare, present: buildPresent };
const NOTHING = new Fold();
const REDUCED_EVERY_MS = 250;
const SUMMARY_EVERY_MS = 250; // while a run grows
const SETTLE_MS = 400; // after the last change a needle may still ease

export class Panel {
  /** @param {ShadowRoot | HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.host = root.host ?? root;
    this.gone = false;
    this.frames = 0;
    this.visible = true;
    this.player = clock.createPlayer();
    this.reduced = matchMedia("(prefers-reduced-motion: reduce)");
    this.actions = this.#actions();
    this.spoken = h("p", { class: "spoken", "aria-live": "polite" });
    this.body = h("div", { class: "body" });
    this.el = h("div", { class: "stage", tabindex: "0", "aria-label": "The run, on one clock", role: "region", "data-state": "loading" }, this.body, this.spoken);
    this.#dress();
    this.releases = [installKeys(this.el, this.actions, () => this.data?.present ?? null), installTip(this.el)];
    this.#observe();
    this.request = requestAnimationFrame((now) => this.#frame(now));
  }

  /** The style sheet comes from beside the modules; nothing is drawn before it is there, since sizes depend on it. */
  #dress() {
    const sheet = h("link", { rel: "stylesheet", href: import.meta.resolve("./stage.css") });
    sheet.addEventListener("load", () => {
      this.dressed = true;
      this.relayout = true;
    });
    this.el.style.visibility = "hidden";
    this.root.append(sheet, this.el);
    this.sheet = sheet;
  }

  #observe() {
    this.resizing = new ResizeObserver(() => { this.relayout = true; });
    this.resizing.observe(this.el);
    this.watching = new IntersectionObserver((entries) => { this.visible = entries[entries.length - 1].isIntersecting; });
    this.watching.observe(this.el);
    this.releases.push(() => this.resizing.disconnect(), () => this.watching.disconnect());
  }

  /** @param {any} component what Streamlit hands over, at every change of data or theme */
  update(component) {
    this.component = component;
    const data = component.data ?? {};
    this.data = data;
    this.#setBeside(data.run ? (data.compare ?? null) : null);
    this.#setDensity(this.#densityFor(data));
    this.#setRun(withKey(data.run ?? null), data.t ?? null);
    if (data.plotly && !this.plotlyAsked) this.#loadPlotly(data.plotly);
    if (data.statusUrl && !this.status) {
      this.status = openStatus(data.statusUrl);
      this.status.use();
    }
    applyTheme(this.el, readTheme(this.host)); // at once: a stage out of sight draws no frame, and may come into sight
    this.relayout = true;
  }

  #densityFor({ present, density }) {
    if (present === "stage") return "present";
    if (this.beside) return "compare";
    return DENSITIES[density] ? density : "hero";
  }

  async #loadPlotly(url) {
    this.plotlyAsked = true;
    try {
      this.plotly = await loadPlotly(url);
    } catch {
      this.plotlyAsked = false; // numbers, needles and text do without; the next update asks again
    }
    this.relayout = true;
  }

  #setDensity(density) {
    if (density === this.density) return;
    this.density = density;
    const { el, parts } = DENSITIES[density]({ actions: this.actions, onRun: (action) => this.#onRun(action) });
    this.#purgePlots();
    this.body.replaceChildren(el);
    this.parts = parts;
    this.el.dataset.density = density;
    this.player = this.#suited(this.player);
    if (density !== "hero" && this.player.restLeft !== null) this.player = clock.pause(this.player);
    if (density === "present" && this.store) this.player = clock.createPlayer({ ...this.player, t: 0, playing: false, follow: false });
  }

  /** The player as this density wants it: Hero goes round, presenter mode stops where phases begin. */
  #suited(player) {
    const present = this.density === "present";
    const left = player.presented === true && !present;
    const autoPause = present || (player.autoPause && !left);
    return Object.freeze({ ...player, loop: this.density === "hero" && !this.reduced.matches, autoPause, presented: present });
  }

  /** A second run on the same clock, or none. */
  #setBeside(run) {
    if (run?.id === this.beside?.run.id) return;
    this.beside = run ? new Beside(run) : null;
    this.sceneKey = undefined;
    this.paced = false;
  }

  #setRun(run, t) {
    const changed = run?.id !== this.run?.id;
    this.run = run;
    if (changed) {
      this.store = run ? openRun(run) : null;
      this.player = this.#suited(this.store?.session.player ?? this.#firstPlayer(run));
      this.paced = Boolean(this.store?.session.player) && !this.beside;
      this.sceneKey = undefined;
      this.summaryOf = undefined;
      this.announced = undefined;
    }
    const asked = t !== null && (changed || t !== this.dataT) && t !== this.store?.session.sentT;
    this.dataT = t;
    if (asked) this.wantedT = t;
  }

  #firstPlayer(run) {
    return clock.createPlayer({ follow: Boolean(run?.live), playing: this.density !== "present" || Boolean(run?.live) });
  }

  /** What the player may know of the run. */
  #scene() {
    const fold = this.fold;
    const complete = this.store?.state === "complete" || this.store?.state === "failed";
    const key = `${fold.version}|${complete}|${this.beside?.key}`;
    if (key !== this.sceneKey || this.sceneFold !== fold) {
      [this.sceneKey, this.sceneFold] = [key, fold];
      const alone = { end: fold.lastTime, complete, boundaries: fold.boundaries(), stops: fold.stops(), tokenTimes: fold.tokenTimes() };
      this.scene = this.beside?.scene(fold, alone) ?? alone;
    }
    return this.scene;
  }

  get fold() { return this.store?.fold ?? NOTHING; }

  #frame(now) {
    if (this.gone) return;
    this.request = requestAnimationFrame((next) => this.#frame(next));
    const elapsed_s = (now - (this.lastFrame ?? now)) / 1000;
    this.lastFrame = now;
    if (!this.dressed || !this.visible) return;
    const scene = this.#scene();
    this.#advance(elapsed_s, scene);
    if (this.reduced.matches && now - (this.lastDrawn ?? -Infinity) < REDUCED_EVERY_MS && !this.relayout) return;
    this.#relayout();
    this.#draw(now, elapsed_s, scene);
  }

  #advance(elapsed_s, scene) {
    const loading = this.store?.state === "loading" && !this.run?.live;
    if (!this.store || loading || this.beside?.loading) return;
    if (scene.complete && !this.paced) this.#pace(scene);
    if (this.wantedT !== undefined) {
      this.player = clock.pause(clock.seek(this.player, this.wantedT, scene.complete ? scene : { ...scene, end: Math.max(scene.end, this.wantedT) }));
      this.wantedT = undefined;
    }
    const before = this.player;
    this.player = clock.advance(before, elapsed_s, scene);
    this.store.session.player = this.player;
    if (before.playing && !this.player.playing && before.autoPause) this.#tellPosition();
  }

  /** A short run is slowed down so that it can be watched; with reduced motion it opens at rest on both phases. */
  #pace(scene) {
    this.paced = true;
    const span = (fold, phase) => fold.spans().filter((s) => s.phase === phase).reduce((sum, s) => sum + s.t1 - s.t0, 0) || null;
    const folds = this.beside ? [this.fold, this.beside.fold] : [this.fold]; // of two runs the slower one sets the pace
    this.player = clock.setSpeed(this.player, Math.max(...folds.map((fold) => clock.watchableSpeed(span(fold, "prefill"), span(fold, "decode")))));
    if (this.reduced.matches && !this.player.follow && this.density !== "present") this.player = clock.pause(clock.seek(this.player, Infinity, scene));
  }

  #relayout() {
    if (!this.relayout) return;
    this.relayout = false;
    this.theme = readTheme(this.host);
    applyTheme(this.el, this.theme);
    this.el.style.visibility = "visible";
    const key = `${this.theme.key}|${this.el.clientWidth}x${this.el.clientHeight}|${this.density}|${Boolean(this.plotly)}`;
    if (key === this.layoutKey) return;
    this.layoutKey = key;
    if (this.plotly) adoptPlotlyRules(this.root);
    for (const part of this.parts) part.layout(this.theme, this.plotly);
  }

  #draw(now, elapsed_s, scene) {
    const { t, playing, speed, follow, autoPause } = this.player;
    const key = [t, playing, speed, follow, autoPause, this.fold.version, this.beside?.key, this.layoutKey, this.store?.state].join("|");
    if (key !== this.drawnKey) [this.drawnKey, this.changedAt] = [key, now];
    const statusChanged = this.status?.value !== this.drawnStatus || this.data?.message !== this.drawnMessage;
    if (now - this.changedAt > SETTLE_MS && !statusChanged) return this.#count();
    [this.drawnStatus, this.drawnMessage, this.lastDrawn] = [this.status?.value, this.data?.message, now];
    const state = this.fold.at(this.player.t);
    const view = this.#view(now, elapsed_s, scene);
    view.beside = this.beside?.at(this.fold, view, t) ?? null;
    for (const part of this.parts) part.update(state, view);
    this.#expose(state, view);
    this.#count();
  }

  #view(now_ms, elapsed_s, scene) {
    return {
      now_ms, elapsed_s, scene, fold: this.fold, run: this.run, theme: this.theme, player: this.player,
      averages: { prefill: this.fold.averages("prefill"), decode: this.fold.averages("decode") },
      summary: this.#summary(now_ms, scene),
      source: sourceOf(this.fold.header, Boolean(this.store?.replayed)),
      still: !this.player.playing || this.reduced.matches,
      reduced: this.reduced.matches,
      status: this.status?.value ?? null,
      served: Boolean(this.data?.statusUrl),
      message: this.data?.message ?? null,
      storeState: this.store?.state ?? "empty",
      problem: this.store?.problem ?? null,
      readerNotes: this.store?.readerNotes ?? [],
    };
  }

  #summary(now_ms, scene) {
    const fresh = this.summaryOf === this.fold && (this.summaryVersion === this.fold.version || (!scene.complete && now_ms - this.summaryAt < SUMMARY_EVERY_MS));
    if (!fresh) {
      [this.summaryOf, this.summaryVersion, this.summaryAt] = [this.fold, this.fold.version, now_ms];
      this.summary = summarise(this.fold);
    }
    return this.summary;
  }

  #count() {
    this.frames += 1;
    this.el.dataset.frames = String(this.frames);
  }

  #expose(state, view) {
    const attributes = {
      "data-state": this.#stateWord(view), "data-source": view.source, "data-phase": state.phase,
      "data-run": this.run?.id ?? null, "data-beside": this.beside?.run.id ?? null, "data-t": this.player.t.toFixed(4),
    };
    for (const [name, value] of Object.entries(attributes)) setAttribute(this.el, name, value);
    if (state.phase === this.announced) return;
    const silent = view.still && this.announced === undefined; // a page that opens at rest does not speak first
    this.announced = state.phase;
    setText(this.spoken, silent ? "" : announcement(state, view.averages));
  }

  #stateWord({ scene, storeState }) {
    if (!this.store) return "empty";
    if (storeState === "failed") return "failed";
    if (!this.fold.header || (this.run?.live && this.fold.lastTime === 0 && !scene.complete)) return this.run?.live ? "waiting" : "loading";
    if (scene.complete && this.player.t >= scene.end) return "ended";
    return this.player.playing ? "playing" : "paused";
  }

  /** @returns {import("./controls.js").Actions} */
  #actions() {
    const change = (next, settled) => {
      this.player = next;
      if (this.store) this.store.session.player = next;
      if (settled) this.#tellPosition();
    };
    return {
      toggle: () => change(clock.toggle(this.player, this.#scene()), this.player.playing),
      token: (direction) => change(clock.stepToken(this.player, direction, this.#scene()), true),
      idea: (direction) => {
        const { t } = this.player;
        const [scene, over] = [this.#scene(), direction > 0 ? t >= this.#scene().end : t <= 0];
        over ? this.actions.step(direction) : change(clock.jumpIdea(this.player, direction, scene), true);
      },
      step: (direction) => this.#tell("step", { direction }),
      leave: () => this.#tell("leave", {}),
      phase: (direction) => change(clock.jumpPhase(this.player, direction, this.#scene()), !this.player.playing),
      seek: (t, done) => change(clock.seek(this.player, t, this.#scene()), done),
      speed: (value) => change(clock.setSpeed(this.player, value)),
      nudge: (direction) => change(clock.nudgeSpeed(this.player, direction)),
      autoPause: (on) => change(Object.freeze({ ...this.player, autoPause: on })),
      live: () => change(clock.followEdge(this.player, this.#scene())),
    };
  }

  #tellPosition() {
    if (!this.run) return;
    const t = this.player.t;
    this.store.session.sentT = t;
    this.component.setStateValue("pos", { run: this.run.id, t });
  }

  #onRun(action) {
    if (action === "stop") return this.component.setTriggerValue("stop", { run: this.run.id, key: this.run.key });
    this.#tell("run", action === "watch" ? { watch: this.status.value.busy.run } : {});
  }

  /** Something that may be wanted twice in a row, and so needs a mark of its own. */
  #tell(name, what) {
    this.component.setTriggerValue(name, { nonce: `${Date.now()}-${this.frames}`, ...what });
  }

  #purgePlots() {
    if (!this.plotly) return;
    for (const plot of this.body.querySelectorAll(".js-plotly-plot")) this.plotly.purge(plot);
  }

  destroy() {
    if (this.gone) return;
    this.gone = true;
    cancelAnimationFrame(this.request);
    for (const release of this.releases) release();
    this.status?.release();
    this.#purgePlots();
    this.el.remove();
    this.sheet.remove();
  }
}
