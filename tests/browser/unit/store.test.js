import { RunStore } from "/assets/stage/store.js";
import { HEADER, equal, madeUpRun, ok, test } from "./check.js";

const lines = (events = madeUpRun()) => [HEADER, ...events].map((value) => JSON.stringify(value));

/** A server that answers with `body`, cut into pieces anywhere. */
const answering = (body, status = 200) => async () => new Response(new Blob([body]).stream(), { status });

async function fetched(body, status) {
  const store = new RunStore("a");
  await store.fetchRecording(answering(body, status));
  return store;
}

/** A socket that a test feeds and cuts. */
class ScriptedSocket {
  constructor(url) { this.from = Number(url.searchParams.get("from")); }
  say(...texts) { this.onmessage({ data: texts.join("\n") }); }
  cut(code = 1006) { this.onclose({ code }); }
  close() { this.cut(1000); }
}

function followed() {
  const [store, sockets] = [new RunStore("a"), []];
  store.retry_s = 0.001;
  store.followSocket((url) => sockets[sockets.push(new ScriptedSocket(url)) - 1]);
  return { store, sockets };
}

const until = async (condition) => {
  for (let i = 0; i < 400 && !condition(); i += 1) await new Promise((resolve) => setTimeout(resolve, 5));
  ok(condition(), "it never came");
};

test("a recording is read to its end", async () => {
  const store = await fetched(`${lines().join("\n")}\n`);
  equal([store.state, store.fold.toString && store.fold.tokens.length, store.readerNotes], ["complete", 5, []]);
});

test("a recording on its way is no live run, a run is one until it is over", () => {
  const loading = new RunStore("a");
  loading.takeLine(lines()[0]);
  equal([loading.state, loading.replayed], ["loading", true]);
  const { store, sockets } = followed();
  equal(store.replayed, false);
  sockets[0].say(...lines());
  sockets[0].cut(1000);
  equal([store.state, store.replayed], ["complete", true]);
});

test("byte order mark, CRLF and a missing last line end do no harm", async () => {
  const store = await fetched(`\uFEFF${lines().join("\r\n")}`);
  equal([store.state, store.fold.tokens.length, store.readerNotes], ["complete", 5, []]);
});

test("a torn last line costs itself, and the reader says that the end is missing", async () => {
  const store = await fetched(lines().slice(0, -3).join("\n").slice(0, -9));
  equal(store.state, "complete");
  ok(store.readerNotes.join().includes("ends early"), store.readerNotes.join());
});

test("damage in the middle is reported with its line", async () => {
  const damaged = lines();
  damaged[3] = '{"n": 2, "t": 0.1, "k": "st';
  const store = await fetched(damaged.join("\n"));
  ok(store.readerNotes.join().includes("Line 4 could not be read"), store.readerNotes.join());
  equal(store.fold.tokens.length, 5);
});

test("NaN, Infinity and 1e999 are unknown, never numbers", async () => {
  const sample = (value) => `{"n":90,"t":0.2,"k":"sample","sensor":"s","metric":"NaN","device":0,"value":${value},"t0":0,"t1":0.2}`;
  for (const value of ["NaN", "-Infinity", "1e999"]) {
    const store = await fetched([...lines(), sample(value)].join("\n"));
    equal(store.fold.at(1).samples.map((s) => [s.metric, s.value]), [["NaN", null]], value);
  }
});

test("unknown kinds are skipped without a word", async () => {
  const store = await fetched([...lines(), '{"n":91,"t":0.3,"k":"hologram","x":1}'].join("\n"));
  equal([store.state, store.readerNotes], ["complete", []]);
});

test("foreign, newer and empty files end in one sentence", async () => {
  for (const [body, words] of [['{"a": 1}', "not a trace"], [JSON.stringify({ ...HEADER, version: 99 }), "newer version (99)"], ["", "empty"], ["[1,2]", "not a trace"]]) {
    const store = await fetched(body);
    equal(store.state, "failed");
    ok(store.problem.includes(words), store.problem);
  }
});

test("a long list of damaged lines is counted, not told line by line", async () => {
  const store = await fetched([...lines().slice(0, 9), ...Array(50).fill("{broken"), ...lines().slice(9)].join("\n"));
  equal(store.readerNotes.length, 6);
  ok(store.readerNotes[5].startsWith("45 more lines"), store.readerNotes[5]);
});

test("a connection that breaks while a recording is fetched keeps what came", async () => {
  const store = new RunStore("a");
  const body = new ReadableStream({
    start(controller) { controller.enqueue(new TextEncoder().encode(lines().slice(0, 5).join("\n") + "\n")); },
    pull(controller) { controller.error(new TypeError("network")); },
  }, { highWaterMark: 0 });
  await store.fetchRecording(async () => new Response(body));
  equal([store.state, store.fold.steps.length], ["complete", 2]);
  ok(store.readerNotes.join().includes("connection broke"), store.readerNotes.join());
});

test("a recording that is gone says so", async () => {
  const store = await fetched("", 404);
  equal(store.state, "failed");
  ok(store.problem.includes("not here any more"), store.problem);
});

test("a server that does not answer is a sentence, not a silence", async () => {
  const store = new RunStore("a");
  await store.fetchRecording(async () => { throw new TypeError("refused"); });
  equal(store.state, "failed");
});

test("a broken connection is taken up from the next event, with nothing lost and nothing twice", async () => {
  const { store, sockets } = followed();
  const all = lines();
  sockets[0].say(all[0], all[1], all[2]);
  sockets[0].cut();
  equal(store.state, "reconnecting");
  await until(() => sockets.length === 2);
  equal(sockets[1].from, 2);
  sockets[1].say(all[2], ...all.slice(3));
  sockets[1].cut(1000);
  equal([store.state, store.fold.tokens.length, store.fold.steps.length], ["complete", 5, 6]);
});

test("a hole in the ordinals is asked for again", async () => {
  const { store, sockets } = followed();
  const all = lines();
  sockets[0].say(all[0], all[1], all[4]);
  await until(() => sockets.length === 2);
  equal(sockets[1].from, 1);
  sockets[1].say(...all.slice(2));
  sockets[1].cut(1000);
  equal([store.state, store.fold.steps.length], ["complete", 6]);
});

test("a run that nobody knows fails, one that was seen stays", async () => {
  const unknown = followed();
  unknown.sockets[0].cut(4404);
  equal(unknown.store.state, "failed");
  const seen = followed();
  seen.sockets[0].say(...lines().slice(0, 5));
  seen.sockets[0].cut(4404);
  equal([seen.store.state, seen.store.fold.steps.length], ["complete", 2]);
});

test("an end with an error keeps what came before it", async () => {
  const { store, sockets } = followed();
  const end = { n: 4, t: 0.2, k: "end", seq: null, reason: "error", message: "The model ran out of memory." };
  sockets[0].say(...lines().slice(0, 5), JSON.stringify(end));
  sockets[0].cut(1000);
  equal([store.state, store.fold.steps.length, store.fold.end.message], ["complete", 2, "The model ran out of memory."]);
});
