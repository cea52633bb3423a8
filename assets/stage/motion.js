/**
 * How things move: a needle eases towards its value within EASE_S, a number changes at a pace that can be read. Neither
 * invents a value: the ease ends at the pass's own figure, and a number is always one pass's own figure, held.
 */

const EASE_S = 0.12;
const NUMBER_EVERY_MS = 220;

/** @param {number | null} shown @param {number | null} target @param {number} elapsed_s @param {boolean} still */
export function ease(shown, target, elapsed_s, still) {
  if (target === null || shown === null || still) return target;
  const next = shown + (target - shown) * (1 - Math.exp((-elapsed_s * 4) / EASE_S));
  return Math.abs(next - target) < 0.001 ? target : next;
}

/** Lets a value through at most every NUMBER_EVERY_MS, and at once when `key` changes or `now` is forced. */
export class Held {
  constructor() {
    this.key = undefined;
    this.at = -Infinity;
    this.value = undefined;
  }

  take(value, key, now_ms, immediately) {
    if (immediately || key !== this.key || now_ms - this.at >= NUMBER_EVERY_MS) {
      [this.value, this.key, this.at] = [value, key, now_ms];
    }
    return this.value;
  }
}
