// What moves by itself: the dial that grows all arrows, the query that turns, the run to a track's answer.
//
// Any hand stops it. Whoever asked for less motion sees it in steps.

import { firstLost } from "./plane.js";

const GROWN = 32; // where "grow all" ends; a run that starts there starts again
const GROW_MS = 8000;
const TURN_MS = 8000;
const REVEAL_MS = 1600;
const STEP_MS = 700;
const CALM = matchMedia("(prefers-reduced-motion: reduce)");

export class Motion {
  constructor(stage) {
    this.stage = stage;
    this.going = null;
  }

  // All arrows grow, as weights do.
  grow() {
    const from = this.stage.state.scale < GROWN / 2 ? this.stage.state.scale : 1;
    this.run(GROW_MS, (share) => this.stage.scaleTo(from * (GROWN / from) ** share));
  }

  // The query turns once around.
  turn() {
    const [length, degrees] = this.stage.state.query;
    this.run(TURN_MS, (share) => this.stage.turnTo(-1, [length, degrees + 360 * share]));
  }

  // In float16, until a score is ∞ or −∞.
  overflow() {
    const from = this.stage.state.scale;
    this.stage.storeIn("float16");
    const to = firstLost(this.stage.state, this.stage.view.limits.scale.high);
    this.run(GROW_MS / 2, (share) => this.stage.scaleTo(from * (to / from) ** share));
  }

  reveal(from, to) {
    this.run(REVEAL_MS, (share) => this.stage.scaleTo(from * (to / from) ** share), false);
  }

  // `move(share)` is called with 0 to 1 while it goes; at the end the server is told, if `tell`.
  run(lasts, move, tell = true) {
    this.stop();
    const going = (this.going = { tell });
    const begun = performance.now();
    const turn = (now) => {
      if (this.going !== going) return;
      const share = Math.min(1, Math.max(0, (now - begun) / lasts));
      move(CALM.matches ? Math.floor((share * lasts) / STEP_MS) / Math.floor(lasts / STEP_MS) : share);
      if (share < 1) return void requestAnimationFrame(turn);
      move(1);
      this.halt();
    };
    this.stage.ask();
    requestAnimationFrame(turn);
  }

  // Stops where it is and tells the server.
  halt() {
    const { tell } = this.going ?? {};
    this.stop();
    if (tell) this.stage.rest();
  }

  stop() {
    if (!this.going) return;
    this.going = null;
    this.stage.ask();
  }
}
