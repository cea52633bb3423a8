/**
 * Where a run's events come from and stay: one store a run, kept at module level, so that a remounted stage draws what is
 * already here instead of fetching it again.
 *
 * A recording is fetched as lines; a growing run is a websocket that is taken up again from the last event that came, so
 * that a break in the network loses nothing. Not covered: what the events mean (fold.js) and where the viewer stands.
 */

import { Fold } from "./fold.js";
import { cleanEvent, headerProblem, parseLine } from "./wire.js";

const KEPT_STORES = 8;
const LINES_NAMED = 5; // of those that cannot be read; the others are counted
const RETRY_FIRST_S = 0.25;
const RETRY_MOST_S = 4;
const CLOSED_NO_SUCH_RUN = 4404;
const STORES = new Map();

/** What is said of a trace without its closing event. */
export const ENDS_EARLY = "The recording ends early; everything up to there is shown.";

/**
 * @typedef {"loading" | "growing" | "reconnecting" | "complete" | "failed"} StoreState
 * @typedef {{id: string, live: boolean, url?: string}} RunRef   `url`: where the lines are, if not at the server
 */

/** The store of a run, opened at the first call. @param {RunRef} run @returns {RunStore} */
export function openRun(run) {
  let store = STORES.get(run.id);
  if (!store || store.state === "failed") {
    store = new RunStore(run.id, run.url);
    STORES.set(run.id, store);
    run.live ? store.followSocket() : store.fetchRecording();
  }
  STORES.delete(run.id);
  STORES.set(run.id, store); // the newest last: the oldest is dropped first
  for (const [id, old] of STORES) {
    if (STORES.size <= KEPT_STORES) break;
    if (old.state !== "growing") { old.close(); STORES.delete(id); }
  }
  return store;
}

export class RunStore {
  /** @param {string} id @param {string} [url] */
  constructor(id, url = `api/traces/${encodeURIComponent(id)}.jsonl`) {
    this.id = id;
    this.url = url;
    this.fold = new Fold();
    /** @type {StoreState} */ this.state = "loading";
    /** @type {string | null} */ this.problem = null;
    /** @type {string[]} */ this.readerNotes = [];
    this.next = 0; // the ordinal of the first event that has not come yet
    this.nLines = 0;
    this.nUnread = 0;
    this.session = {}; // what a stage wants to find again after a remount
  }

  /** Whether this is a recording, on its way or here, or a run that is over. */
  get replayed() { return !this.socket || this.state === "complete" || this.state === "failed"; }

  /** Reads a whole recording, line by line as it comes, so that a long one never blocks the page. */
  async fetchRecording(fetcher = fetch) {
    try {
      const response = await fetcher(new URL(this.url, document.baseURI));
      if (!response.ok) return this.#fail(response.status === 404 ? "This recording is not here any more." : `The recording could not be fetched (status ${response.status}).`);
      await this.#readLines(response.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch {
      if (!this.fold.header) return this.#fail("The recording could not be fetched: the server does not answer.");
      this.readerNotes.push("The connection broke while the recording was fetched.");
    }
    this.#finish();
  }

  /** Follows a growing run from the first event that is missing. @param {(url: URL) => WebSocket} [connect] */
  followSocket(connect = (url) => new WebSocket(url)) {
    const url = new URL(`api/run?run=${encodeURIComponent(this.id)}&from=${this.fold.header ? this.next : 0}`, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = connect(url);
    this.socket = socket;
    socket.onmessage = (message) => {
      this.retry_s = RETRY_FIRST_S;
      if (this.state !== "complete") this.state = "growing";
      for (const line of String(message.data).split("\n")) this.takeLine(line);
    };
    socket.onclose = (event) => this.socket === socket && this.#socketClosed(event.code, connect);
  }

  #socketClosed(code, connect) {
    if (this.state === "failed" || this.closed) return;
    if (this.fold.end) return this.#finish();
    if (code === CLOSED_NO_SUCH_RUN) {
      if (!this.fold.header) return this.#fail("This run is not on the server any more.");
      this.readerNotes.push("The server does not know this run any more; what was received stays.");
      return this.#finish();
    }
    this.state = "reconnecting";
    const wait = this.retry_s ?? RETRY_FIRST_S;
    this.retry_s = Math.min(RETRY_MOST_S, wait * 2);
    setTimeout(() => this.closed || this.followSocket(connect), wait * 1000);
  }

  async #readLines(reader) {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) this.takeLine(line);
      if (this.state === "failed") return reader.cancel();
    }
    if (rest.trim()) this.takeLine(rest, true);
  }

  /**
   * One line: the header first, then events. Ordinals that came before are passed over, a hole is asked for again.
   * @param {string} line @param {boolean} [torn] the last line, without its line end
   */
  takeLine(line, torn = false) {
    this.nLines += 1;
    const text = line.replace(/^\uFEFF/, "").trim();
    if (!text || this.state === "failed") return;
    const payload = parseLine(text);
    if (!this.fold.header) return this.#takeHeader(payload);
    if (payload?.format !== undefined && payload.k === undefined) return;
    const event = cleanEvent(payload);
    if (event === undefined) {
      if (!torn && (this.nUnread += 1) <= LINES_NAMED) this.readerNotes.push(`Line ${this.nLines} could not be read.`);
      return;
    }
    const n = payload.n;
    if (this.socket && Number.isInteger(n) && n < this.next) return;
    if (this.socket && Number.isInteger(n) && n > this.next) return this.socket.close();
    if (Number.isInteger(n)) this.next = Math.max(this.next, n + 1);
    if (event) this.fold.add(event);
  }

  #takeHeader(payload) {
    const problem = headerProblem(payload);
    if (problem) return this.#fail(problem);
    this.fold.setHeader(payload);
  }

  #finish() {
    if (this.state === "failed") return;
    if (!this.fold.header) return this.#fail("The trace is empty.");
    if (this.nUnread > LINES_NAMED) this.readerNotes.push(`${this.nUnread - LINES_NAMED} more lines could not be read.`);
    if (!this.fold.end) this.readerNotes.push(ENDS_EARLY);
    this.state = "complete";
    this.fold.version += 1;
  }

  #fail(sentence) {
    this.state = "failed";
    this.problem = sentence;
  }

  close() {
    this.closed = true;
    this.socket?.close();
  }
}
