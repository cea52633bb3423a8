/**
 * Numbers as people read them: SI prefixes (GB is 1e9), three significant digits, a dash for the unknown.
 *
 * A narrow no-break space stands between number and unit. Nothing here rounds a small value to 0.
 */

export const DASH = "–";
const GAP = "\u202f";
const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** Three significant digits, no exponent: 0.123, 1.20, 12.0, 123, 1,234. Zeros stay, so that a figure keeps its width. */
export function digits(value, significant = 3) {
  if (!known(value)) return DASH;
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(roundTo(value, significant))));
  const decimals = Math.min(9, Math.max(0, significant - 1 - magnitude));
  return value.toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** A value with its SI prefix: si(538e6, "B") is "538 MB". */
export function si(value, unit, significant = 3) {
  if (!known(value)) return DASH;
  const [scale, prefix] = PREFIXES.find(([size]) => Math.abs(roundTo(value, significant)) >= size) ?? [1, ""];
  return `${digits(value / scale, significant)}${GAP}${prefix}${unit}`;
}

export const bytes = (value) => si(value, "B");
export const bytesPerSecond = (value) => si(value, "B/s");
export const flopsPerSecond = (value) => si(value, "FLOP/s");
export const flops = (value) => si(value, "FLOP");

/** A duration: "27 ms", "1.1 ms", "480 µs", "2.21 s". Two digits suit a sentence, three a table. */
export function seconds(value, significant = 3) {
  if (!known(value)) return DASH;
  if (value === 0) return `0${GAP}s`;
  const [scale, unit] = TIMES.find(([size]) => Math.abs(roundTo(value, significant)) >= size) ?? TIMES[3];
  return `${digits(value / scale, significant)}${GAP}${unit}`;
}

/** A duration in two digits, in the unit that fits `model`, unless it would be lost there: 0.73 ms beside 18 ms. */
export function secondsLike(value, model) {
  if (!known(value)) return DASH;
  const [scale, unit] = TIMES.find(([size]) => Math.abs(roundTo(model, 2)) >= size) ?? TIMES[3];
  return value / scale < 0.01 ? seconds(value, 2) : `${digits(value / scale, 2)}${GAP}${unit}`;
}

/** A place on the clock, with as many decimals as steps need: "0.361 s", "12.34 s", "3:05.2". */
export function clock(value) {
  if (!known(value)) return DASH;
  if (value < 10) return `${value.toFixed(3)}${GAP}s`;
  if (value < 60) return `${value.toFixed(2)}${GAP}s`;
  return `${Math.floor(value / 60)}:${(value % 60).toFixed(1).padStart(4, "0")}`;
}

/** A share of a ceiling: "79 %", "3.4 %" below 10, "< 0.1 %" near nothing. */
export function percent(share) {
  if (!known(share)) return DASH;
  const value = share * 100;
  if (value > 0 && value < 0.1) return `<${GAP}0.1${GAP}%`;
  return `${value === 0 ? 0 : value < 9.95 ? value.toFixed(1) : Math.round(value)}${GAP}%`;
}

/** How many times: "24 times", "2.4 times", "1,250 times". */
export function times(ratio) {
  return known(ratio) ? `${digits(ratio, ratio < 9.95 ? 2 : ratio < 1000 ? Math.ceil(Math.log10(ratio)) : 3)} times` : DASH;
}

/** A count with its word: "1 token", "256 tokens". */
export function count(value, word) {
  return known(value) ? `${value.toLocaleString("en-GB")} ${word}${value === 1 ? "" : "s"}` : `${DASH} ${word}s`;
}

export const rate = (value) => (known(value) ? `${digits(value)}${GAP}tok/s` : DASH);
export const intensity = (value) => (known(value) ? `${digits(value)}${GAP}FLOP/byte` : DASH);

/** Two figures side by side, their unit once where it is the same: "315 | 16.8 GFLOP/s". */
export function pair(left, right) {
  const [number, unit] = left.split(GAP);
  return unit && right.endsWith(GAP + unit) ? `${number} | ${right}` : `${left} | ${right}`;
}

/** A sensor's value in the unit its header names. */
export function reading(value, unit) {
  if (!known(value)) return DASH;
  if (unit === "fraction") return percent(value);
  if (unit === "bytes") return bytes(value);
  const name = { hz: "Hz", w: "W", j: "J", c: "°C", celsius: "°C" }[String(unit ?? "").toLowerCase()] ?? unit ?? "";
  return name === "Hz" ? si(value, "Hz") : `${digits(value)}${name ? GAP + name : ""}`;
}

function roundTo(value, significant) {
  return value === 0 ? 0 : Number(value.toPrecision(significant));
}
