/**
 * The clock of a replay, pure: a frozen state and what is known of the run (the scene) in, the next state out.
 *
 * One player serves recordings and growing runs alike, as a video player does with a live edge: while `follow` is set
 * the clock stands at the newest event. It knows nothing of the page, of frames or of events' contents.
 *
 * @typedef {{end: number, complete: boolean, boundaries: number[], stops: number[], tokenTimes: number[]}} Scene
 *   `end` is the newest time known; `complete` says that nothing will follow; `boundaries` are the starts of phases,
 *   `stops` those at which an auto-pause stops, and `tokenTimes` the moments of tokens, all rising.
 * @typedef {{t: number, speed: number, playing: boolean, follow: boolean, autoPause: boolean, loop: boolean,
 *   restLeft: number | null}} Player   `restLeft`: seconds of rest at the end before the next round, null when not resting
 */

export const SPEEDS = Object.freeze([0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10]);
export const REST_S = 7;
const MAX_TICK_S = 0.25; // after a hidden tab or a long task the clock goes on, it does not leap
const READING_SEEN_S = 0.7;
const WRITING_SEEN_S = 2.5;

/** @param {Partial<Player>} [given] @returns {Readonly<Player>} */
export function createPlayer(given = {}) {
  return Object.freeze({
    t: 0, speed: 1, playing: true, follow: false, autoPause: false, loop: false, restLeft: null, ...given,
  });
}

const change = (player, fields) => Object.freeze({ ...player, ...fields });

/** The state after `elapsed` seconds of the viewer's time. @param {Player} player @param {number} elapsed @param {Scene} scene */
export function advance(player, elapsed, scene) {
  const tick = Math.min(Math.max(elapsed, 0), MAX_TICK_S);
  if (!player.playing) return player;
  if (player.restLeft !== null) return rest(player, tick);
  const following = player.follow && !scene.complete;
  const next = following ? scene.end : player.t + tick * player.speed;
  const stop = player.autoPause ? firstAfter(scene.stops, player.t) : undefined;
  if (stop !== undefined && stop <= next && stop <= scene.end) {
    return change(player, { t: stop, playing: false, follow: false });
  }
  if (following) return change(player, { t: next, restLeft: null });
  return next < scene.end ? change(player, { t: next }) : arrive(player, scene);
}

function arrive(player, scene) {
  if (!scene.complete) return change(player, { t: scene.end, follow: true });
  if (player.loop) return change(player, { t: scene.end, follow: false, restLeft: REST_S });
  return change(player, { t: scene.end, follow: false, playing: false });
}

function rest(player, tick) {
  const left = player.restLeft - tick;
  return left > 0 ? change(player, { restLeft: left }) : change(player, { t: 0, restLeft: null });
}

/** Play; from the end of a complete run, from its start. @param {Player} player @param {Scene} scene */
export function play(player, scene) {
  const again = scene.complete && player.t >= scene.end;
  return change(player, { playing: true, restLeft: null, t: again ? 0 : player.t });
}

/** @param {Player} player */
export function pause(player) { return change(player, { playing: false, follow: false, restLeft: null }); }

/** @param {Player} player @param {Scene} scene */
export function toggle(player, scene) { return player.playing ? pause(player) : play(player, scene); }

/** @param {Player} player @param {number} t @param {Scene} scene */
export function seek(player, t, scene) {
  return change(player, { t: clamp(t, 0, scene.end), follow: false, restLeft: null });
}

/** Stand at the live edge and stay there. @param {Player} player @param {Scene} scene */
export function followEdge(player, scene) {
  return change(player, { t: scene.end, follow: !scene.complete, playing: true, restLeft: null });
}

/** @param {Player} player @param {number} speed */
export function setSpeed(player, speed) {
  return change(player, { speed: clamp(speed, SPEEDS[0], SPEEDS[SPEEDS.length - 1]) });
}

/** The next speed up (+1) or down (-1). @param {Player} player @param {1 | -1} direction */
export function nudgeSpeed(player, direction) {
  const list = direction > 0 ? SPEEDS : [...SPEEDS].reverse();
  return setSpeed(player, list.find((s) => (s - player.speed) * direction > 1e-9) ?? player.speed);
}

/** Pause at the next or the previous token. @param {Player} player @param {1 | -1} direction @param {Scene} scene */
export function stepToken(player, direction, scene) { return jump(player, scene.tokenTimes, direction, scene); }

/** Go to the next or the previous start of a phase, going on as before. */
export function jumpPhase(player, direction, scene) {
  return change(jump(player, scene.boundaries, direction, scene), { playing: player.playing });
}

/** Stand at the next or the previous idea: the start, a stop, the end. */
export function jumpIdea(player, direction, scene) { return jump(player, scene.stops, direction, scene); }

function jump(player, moments, direction, scene) {
  const target = direction > 0 ? firstAfter(moments, player.t) : lastBefore(moments, player.t);
  const t = target ?? (direction > 0 ? scene.end : 0);
  return change(pause(player), { t: clamp(t, 0, scene.end) });
}

function firstAfter(moments, t) {
  let low = 0;
  let high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle] > t) high = middle;
    else low = middle + 1;
  }
  return moments[low];
}

function lastBefore(moments, t) {
  let low = 0;
  let high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle] < t) low = middle + 1;
    else high = middle;
  }
  return moments[low - 1];
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));

/**
 * The speed at which a short run can be watched: the fastest of SPEEDS, at most real time, that shows reading for
 * READING_SEEN_S and writing for WRITING_SEEN_S. A slower replay is told to the viewer; nothing is dropped or stretched.
 * @param {number | null} reading_s @param {number | null} writing_s
 */
export function watchableSpeed(reading_s, writing_s) {
  const slowDown = Math.min((reading_s ?? 1) / READING_SEEN_S, (writing_s ?? 3) / WRITING_SEEN_S);
  const fits = SPEEDS.filter((speed) => speed <= Math.min(1, slowDown * 1.05));
  return fits.length ? fits[fits.length - 1] : SPEEDS[0];
}
