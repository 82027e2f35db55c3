// The stage: the state that the hands change, and everything that is drawn anew within the frame when they do.
//
// The server's state comes with `show`; what a hand did is sent when it rests, and stands until the server has it.

import { asKept, attend } from "./plane.js";
import { build, draw, tell } from "./drawing.js";
import { holdControls, holdSide } from "./hands.js";
import { Motion } from "./motion.js";
import { fill, percent } from "./words.js";

const QUIET_MS = 700; // a screen reader hears what came of a change once it rests
const PATIENCE_MS = 3000; // how long older data may arrive after a pick without taking the arrows back
const ALIKE = 1e-9; // of all attention: two shares closer than that are one
const QUERY = -1; // the place of the query among the arrows

export class Stage {
  constructor(root) {
    this.root = root;
    this.motion = new Motion(this);
    this.sizes = new ResizeObserver(() => this.ask());
    this.sizes.observe(root);
    this.sent = null; // what the server was told and has not brought back yet
    this.held = null; // the pointer that holds an arrow
    this.looking = null; // the scale that words of a text point at
    this.looked = ({ detail }) => this.view && this.look(detail);
    document.addEventListener("qkdemo:look", this.looked);
    this.send = (/** @type {object} */ _changed) => {};
  }

  show(view) {
    const before = this.view;
    this.view = view;
    const fresh = !this.parts || this.parts.keys !== view.names.keys.length || before.heading !== view.heading;
    if (fresh) this.rebuild();
    this.root.classList.toggle("lecture", Boolean(view.lecture));
    this.root.classList.toggle("stop", Boolean(view.stop));
    this.root.classList.toggle("locked", Boolean(view.locked));
    this.parts.controls.range.disabled = Boolean(view.locked);
    for (const button of this.parts.controls.buttons) button.disabled = Boolean(view.locked);
    this.wear();
    this.arrive(view.state, before);
    if (fresh) this.redraw(); // no frame in which its sliders have neither name nor value
    else this.ask();
  }

  // The newest of what the server and the hands say; a track's answer is gone to by a run of the dial.
  arrive(state, before) {
    const text = JSON.stringify(state);
    if (this.sent && text !== this.sent.text && performance.now() - this.sent.at < PATIENCE_MS) return;
    this.sent = null;
    if (this.motion.going || this.held) return;
    if (before?.locked && !this.view.locked && this.state.scale !== state.scale) {
      const from = this.state.scale;
      this.state = structuredClone(state);
      this.motion.reveal(from, state.scale);
    } else if (text !== JSON.stringify(this.state)) {
      this.state = structuredClone(state);
    }
  }

  rebuild() {
    this.parts = build(this.root, this.view);
    holdControls(this.parts.controls, this);
    this.parts.sides.forEach((side) => holdSide(side, this));
  }

  // The colours of the two roles come from the theme's palette.
  wear() {
    const css = getComputedStyle(this.root);
    const palette = css.getPropertyValue("--st-chart-categorical-colors").split(/,(?![^(]*\))/);
    ["plain", "norm"].forEach((role, at) => palette[at] && this.root.style.setProperty(`--${role}`, palette[at].trim()));
  }

  // ---- what hands and motion do

  turnTo(place, [length, degrees]) {
    const { low, high } = this.view.limits.length;
    const bounded = Math.min(high, Math.max(low, Math.round(length * 100) / 100));
    const turned = Math.round(((((degrees + 180) % 360) + 360) % 360) - 180);
    const arrow = [Number.isFinite(bounded) ? bounded : low, turned === -180 ? 180 : turned];
    if (place === QUERY) this.state.query = arrow;
    else this.state.keys[place] = arrow;
    this.ask();
  }

  scaleTo(scale) {
    const { low, high } = this.view.limits.scale;
    this.state.scale = asKept(Math.min(high, Math.max(low, scale)));
    this.ask();
  }

  // Words in a text point at a scale, at a side, or at nothing any more.
  look({ turns, role }) {
    this.looking = turns?.scale === undefined ? null : Number(turns.scale);
    this.root.dataset.lit = role ?? "";
    this.ask();
  }

  storeIn(format) {
    this.state.format = format;
    this.ask();
  }

  startAgain() {
    this.motion.stop();
    this.state = structuredClone(this.view.start);
    this.ask();
    this.rest();
  }

  arrowAt(place) {
    return place === QUERY ? this.state.query : this.state.keys[place];
  }

  // A hand, or a motion, came to rest: the server is told what changed.
  rest() {
    const changed = changes(this.view.state, this.state);
    if (!Object.keys(changed).length) return;
    this.sent = { text: JSON.stringify(this.state), at: performance.now() };
    this.send(changed);
  }

  // ---- drawing, once a frame

  ask() {
    if (this.frame || !this.state) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.redraw();
    });
  }

  redraw() {
    const state = this.looking === null || this.held ? this.state : { ...this.state, scale: this.looking };
    const found = attend(state);
    draw(this.parts, state, found, this.view, Boolean(this.motion.going));
    this.say(found);
  }

  say(found) {
    const words = this.headline(found);
    tell(this.parts.finding, words);
    clearTimeout(this.speaking);
    if (this.spoken === undefined) this.spoken = words; // what stands there at first is read with the page
    if (words === this.spoken) return;
    this.speaking = setTimeout(() => {
      if (this.motion.going || this.held) return this.say(found);
      this.spoken = words;
      document.dispatchEvent(new CustomEvent("qkdemo:say", { detail: { words } }));
    }, QUIET_MS);
  }

  headline({ plain, norm }) {
    const { words, names, locked } = this.view;
    if (locked) return words.open;
    const [ofPlain, ofNorm] = [winners(plain.shares), winners(norm.shares)];
    const named = (keys) =>
      keys.map((at) => names.keys[at]).reduce((head, last) => (head ? fill(words.both, { head, last }) : last), "");
    const share = ({ shares }, [first, second]) =>
      first === undefined ? "" : second === undefined ? percent(shares[first]) : fill(words.each, { share: percent(shares[first]) });
    const level = [ofPlain, ofNorm].every((keys) => keys.length === names.keys.length); // as for a query of length 0
    const most = { plain: named(ofPlain), norm: named(ofNorm) };
    const kind = ofPlain.length === 0 ? "undefined" : level ? "level" : most.plain === most.norm ? "alike" : "apart";
    return fill(words[kind], {
      query: names.query,
      ...most,
      plain_share: share(plain, ofPlain),
      norm_share: share(norm, ofNorm),
    });
  }

  close() {
    this.motion.stop();
    document.removeEventListener("qkdemo:look", this.looked);
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.speaking);
  }
}

// The places of the largest share, more than one if they are alike; none where there are no shares.
export function winners(shares) {
  if (shares.some(Number.isNaN)) return [];
  return shares.flatMap((share, at) => (share >= Math.max(...shares) - ALIKE ? [at] : []));
}

// What differs between two states, by the names of the dials.
export function changes(from, to) {
  const changed = {};
  for (const name of ["scale", "gain", "format"]) if (from[name] !== to[name]) changed[name] = to[name];
  const arrows = [["query", from.query, to.query], ...to.keys.map((key, at) => [`key_${at + 1}`, from.keys[at], key])];
  for (const [name, before, after] of arrows) {
    if (before[0] !== after[0]) changed[`${name}_length`] = after[0];
    if (before[1] !== after[1]) changed[`${name}_angle`] = after[1];
  }
  return changed;
}
