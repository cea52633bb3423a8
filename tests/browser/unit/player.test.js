import * as player from "/assets/stage/player.js";
import { close, equal, ok, random, test } from "./check.js";

const SCENE = Object.freeze({ end: 2, complete: true, boundaries: [0.1, 0.5, 2], stops: [0.5], tokenTimes: [0.5, 0.6, 0.7, 1.5] });
const GROWING = Object.freeze({ ...SCENE, complete: false });
const at = (t, fields = {}) => player.createPlayer({ t, ...fields });

test("the clock runs at its speed and stops at the end", () => {
  close(player.advance(at(0, { speed: 0.5 }), 0.2, SCENE).t, 0.1);
  const ended = player.advance(at(1.95), 0.2, SCENE);
  equal([ended.t, ended.playing], [2, false]);
});

test("a hidden tab does not make the clock leap", () => close(player.advance(at(0), 30, SCENE).t, 0.25));

test("a paused clock stands", () => equal(player.advance(at(0.3, { playing: false }), 1, SCENE).t, 0.3));

test("following stands at the live edge and reaches the end of the run", () => {
  equal(player.advance(at(0, { follow: true }), 0.016, GROWING).t, 2);
  const ended = player.advance(at(2, { follow: true }), 0.016, SCENE);
  equal([ended.playing, ended.follow], [false, false]);
});

test("from behind, the live edge is caught up with at more than real time", () => {
  let state = at(0, { speed: 10 });
  for (let i = 0; i < 20; i += 1) state = player.advance(state, 0.1, GROWING);
  equal([state.t, state.follow], [2, true]);
});

test("seeking leaves the live edge, and one button goes back to it", () => {
  const back = player.seek(at(2, { follow: true }), 0.4, GROWING);
  equal([back.t, back.follow], [0.4, false]);
  equal(player.followEdge(back, GROWING).follow, true);
});

test("with auto-pause the clock stops exactly at the next phase, then goes on", () => {
  const stopped = player.advance(at(0.45, { autoPause: true }), 0.2, SCENE);
  equal([stopped.t, stopped.playing], [0.5, false]);
  ok(player.advance(player.play(stopped, SCENE), 0.1, SCENE).t > 0.5, "it goes on");
});

test("Hero rests at the end, then begins again", () => {
  let state = player.advance(at(1.99, { loop: true }), 0.1, SCENE);
  equal([state.t, state.restLeft], [2, player.REST_S]);
  for (let i = 0; i < player.REST_S * 10 - 2; i += 1) state = player.advance(state, 0.1, SCENE);
  equal(state.t, 2, "still resting");
  for (let i = 0; i < 4; i += 1) state = player.advance(state, 0.1, SCENE);
  ok(state.t < 1 && state.restLeft === null, "begun again");
});

test("stepping by token pauses on each token, both ways", () => {
  let state = player.stepToken(at(0.5), 1, SCENE);
  equal([state.t, state.playing], [0.6, false]);
  state = player.stepToken(player.stepToken(state, 1, SCENE), -1, SCENE);
  equal(state.t, 0.6);
  equal(player.stepToken(at(1.6), 1, SCENE).t, 2, "past the last token lies the end");
  equal(player.stepToken(at(0.2), -1, SCENE).t, 0, "before the first the start");
});

test("jumping by phase goes on playing if it played", () => {
  equal([player.jumpPhase(at(0.2), 1, SCENE).t, player.jumpPhase(at(0.2), 1, SCENE).playing], [0.5, true]);
  equal(player.jumpPhase(at(0.5), -1, SCENE).t, 0.1);
});

test("speeds go up and down their list and no further", () => {
  equal(player.nudgeSpeed(at(0), 1).speed, 2);
  equal(player.nudgeSpeed(at(0, { speed: 10 }), 1).speed, 10);
  equal(player.nudgeSpeed(at(0, { speed: 0.02 }), -1).speed, 0.02);
  equal(player.setSpeed(at(0), 99).speed, 10);
});

test("playing from the end of a finished run begins it again", () => equal(player.play(at(2, { playing: false }), SCENE).t, 0));

test("a short run is shown slower, a long one at its own speed", () => {
  equal(player.watchableSpeed(0.36, 1.85), 0.5);
  equal(player.watchableSpeed(5, 60), 1);
  equal(player.watchableSpeed(0.0001, 0.1), 0.02);
  equal(player.watchableSpeed(null, null), 1);
});

test("whatever is done to it, the clock stays within the run", () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const draw = random(seed);
    let state = at(0, { loop: draw() < 0.5, autoPause: draw() < 0.5 });
    let scene = { ...GROWING, end: 0 };
    for (let i = 0; i < 200; i += 1) {
      scene = { ...scene, end: Math.min(2, scene.end + draw() * 0.05), complete: scene.complete || (scene.end >= 2 && draw() < 0.2) };
      state = anyAction(state, draw, scene);
      ok(Object.isFrozen(state), "a state is never changed in place");
      ok(state.t >= 0 && state.t <= scene.end + 1e-12, `seed ${seed}: t ${state.t} outside 0..${scene.end}`);
      ok(!(scene.complete && state.follow && player.advance(state, 0.01, scene).follow), "a finished run has no live edge");
    }
  }
});

function anyAction(state, draw, scene) {
  const direction = draw() < 0.5 ? 1 : -1;
  const actions = [
    () => player.advance(state, draw() * 0.3, scene), () => player.toggle(state, scene), () => player.seek(state, draw() * 3 - 0.5, scene),
    () => player.stepToken(state, direction, scene), () => player.jumpPhase(state, direction, scene),
    () => player.nudgeSpeed(state, direction), () => player.followEdge(state, scene),
  ];
  return draw() < 0.6 ? player.advance(state, draw() * 0.1, scene) : actions[Math.floor(draw() * actions.length)]();
}

test("presenting a growing run stops where a phase begins, and the run goes on without it", () => {
  const stopped = player.advance(at(0.3, { follow: true, autoPause: true }), 0.016, GROWING);
  equal([stopped.t, stopped.playing, stopped.follow], [0.5, false, false]);
  const resumed = player.advance(player.play(stopped, GROWING), 0.1, GROWING);
  close(resumed.t, 0.6);
});

test("stepping by idea stands at the start, at each stop and at the end", () => {
  let state = at(0.2);
  for (const wanted of [0.5, 2]) equal((state = player.jumpIdea(state, 1, SCENE)).t, wanted);
  for (const wanted of [0.5, 0]) equal((state = player.jumpIdea(state, -1, SCENE)).t, wanted);
});
