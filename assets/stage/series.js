/**
 * Records in order of time, then of arrival: what every question "what was known at t?" is answered from.
 *
 * A trace's lines stand in order of arrival and their times may run back a little, so a late record is put in its
 * place. `dirty` is the first index that changed since somebody last caught up with derived figures (running sums).
 */

/** @template {{t: number, n: number}} R */
export class Series {
  constructor() {
    /** @type {R[]} */ this.items = [];
    this.dirty = 0;
  }

  get length() { return this.items.length; }

  /** @returns {R | undefined} */
  get last() { return this.items[this.items.length - 1]; }

  /** @param {R} record */
  add(record) {
    let index = this.items.length;
    while (index > 0 && isAfter(this.items[index - 1], record)) index -= 1;
    if (index === this.items.length) this.items.push(record);
    else this.items.splice(index, 0, record);
    this.dirty = Math.min(this.dirty, index);
  }

  /**
   * How many records stand at or before `t`, by `key` (a time that never falls along the series).
   * @param {number} t
   * @param {(record: R) => number} [key]
   */
  countUntil(t, key = timeOf) {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (key(this.items[middle]) <= t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The last record at or before `t`. @param {number} t @param {(record: R) => number} [key] */
  lastUntil(t, key = timeOf) { return this.items[this.countUntil(t, key) - 1]; }
}

const timeOf = (record) => record.t;
const isAfter = (a, b) => a.t > b.t || (a.t === b.t && a.n > b.n);
