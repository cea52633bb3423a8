/**
 * One line of a trace to one value, forgiving as a reader should be: NaN, Infinity and overflowing numbers become null,
 * unknown kinds are skipped, a line that cannot be read costs that line alone.
 *
 * The header is checked as telemetry/events.py checks it, with the same sentences.
 */

const FORMAT = "siliconscope-trace";
const VERSION = 1;
const KINDS = new Set(["request", "phase", "step", "token", "sample", "meta", "note", "end"]);
const STRING_OR_NON_FINITE = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g;

/** @param {string} line @returns {any} undefined when the line is no JSON */
export function parseLine(line) {
  try {
    return JSON.parse(line);
  } catch {
    return parseForgiving(line);
  }
}

function parseForgiving(line) {
  const plain = line.replace(STRING_OR_NON_FINITE, (match) => (match.startsWith('"') ? match : "null"));
  try {
    return JSON.parse(plain);
  } catch {
    return undefined;
  }
}

/**
 * @param {any} payload
 * @returns {string | null} the sentence that says why this is no header, or null
 */
export function headerProblem(payload) {
  if (!isObject(payload) || payload.format !== FORMAT) return "This is not a trace file: its first line does not say so.";
  if (!Number.isInteger(payload.version) || payload.version < 1) return "This trace does not say which version it is.";
  if (payload.version > VERSION) {
    return `This trace was made by a newer version (${payload.version}); this app reads ${VERSION}.`;
  }
  const missing = ["created", "id", "model", "precision", "source"].filter((name) => !(name in payload));
  return missing.length ? `The trace's first line lacks ${missing.join(", ")}.` : null;
}

/**
 * An event that the fold can trust, null for an unknown kind, undefined for a garbled one.
 * @param {any} payload
 */
export function cleanEvent(payload) {
  if (!isObject(payload)) return undefined;
  if (!KINDS.has(payload.k)) return null;
  if (!Number.isInteger(payload.n) || payload.n < 0 || !Number.isFinite(payload.t)) return undefined;
  return (CLEANERS[payload.k] ?? ((event) => event))(payload);
}

const CLEANERS = {
  step(event) {
    const timed = Number.isFinite(event.t0) && Number.isFinite(event.t1) && event.t1 >= event.t0;
    if (!timed || !Array.isArray(event.rows) || !event.rows.every(isRow)) return undefined;
    return { ...event, flops: finiteOrNull(event.flops), bytes: cleanBytes(event.bytes), repeat: event.repeat === true };
  },
  sample(event) {
    if (!Number.isFinite(event.t0) || !Number.isFinite(event.t1)) return undefined;
    return { ...event, value: finiteOrNull(event.value) };
  },
  token(event) {
    const text = typeof event.text === "string" ? event.text : "";
    return { ...event, text, count: event.count === undefined ? 1 : finiteOrNull(event.count) };
  },
  meta(event) {
    return isObject(event.fields) ? event : undefined;
  },
};

function isRow(row) {
  return Array.isArray(row) && Number.isFinite(row[1]) && Number.isFinite(row[2]) && typeof row[3] === "string";
}

function cleanBytes(bytes) {
  if (!isObject(bytes)) return null;
  const parts = ["weights", "kv_read", "kv_write", "activations"];
  return parts.every((part) => Number.isFinite(bytes[part])) ? bytes : null;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const finiteOrNull = (value) => (Number.isFinite(value) ? value : null);
