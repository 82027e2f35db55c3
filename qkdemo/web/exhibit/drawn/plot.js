// One plot on its canvas: sharp on every screen, with what does not follow the cursor kept on a layer of its own.

import { CanvasPen } from "../pens/pen.js";
import * as arcs from "./arcs.js";
import * as arrows from "./arrows.js";
import * as bars from "./bars.js";
import * as curves from "./curves.js";
import * as heat from "./heat.js";

export const KINDS = { arcs, arrows, bars, curves, heat };

export class Plot {
  constructor(canvas, kind) {
    this.canvas = canvas;
    this.kind = KINDS[kind];
    this.pen = null;
    this.layer = null; // the resting layer
    this.right = false; // whether it is
    this.shown = null; // what was drawn on it, of a kind that can tell
    this.touched = null; // where something follows the cursor, if that is not everywhere: [left, width], in pixels
    this.box = { x: 0, y: 0, w: 0, h: 0 };
  }

  // Fits the canvas to the room it has; true if that changed anything.
  fit() {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (w === this.box.w && h === this.box.h && ratio === this.ratio) return false;
    this.box = { x: 0, y: 0, w, h };
    this.ratio = ratio;
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    this.pen = null; // resizing a canvas forgets its font
    this.layer = null; // of another size
    this.forget();
    return true;
  }

  // The resting layer is no longer right: other data, another theme, another selection.
  forget() {
    this.right = false;
    this.shown = this.touched = null;
  }

  draw(scene) {
    if (!this.box.w || !this.box.h) return;
    const shown = this.kind.shownOf?.(scene) ?? null;
    if (this.right && alike(shown, this.shown)) return;
    this.shown = shown;
    if (!this.pen || this.pen.theme !== scene.theme) this.pen = this.penOn(this.canvas, scene.theme);
    const { context } = this.pen;
    const [layer, touched] = [this.rested(scene), this.touches(scene)];
    context.setTransform(1, 0, 0, 1, 0, 0);
    const whole = [0, this.canvas.width];
    for (const [left, width] of this.touched && touched ? [this.touched, touched] : [whole]) {
      context.clearRect(left, 0, width, layer.height);
      context.drawImage(layer, left, 0, width, layer.height, left, 0, width, layer.height);
    }
    this.touched = touched;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.kind.live(this.pen, this.box, scene);
  }

  touches(scene) {
    const span = this.kind.touched?.(this.box, scene);
    if (!span) return null;
    const [left, right] = [Math.floor(span[0] * this.ratio), Math.ceil(span[1] * this.ratio)];
    return [Math.max(0, left), Math.max(1, Math.min(this.canvas.width, right) - Math.max(0, left))];
  }

  rested(scene) {
    if (this.right) return this.layer;
    if (!this.layer) {
      this.layer = document.createElement("canvas");
      this.layer.width = this.canvas.width;
      this.layer.height = this.canvas.height;
    }
    const pen = this.penOn(this.layer, scene.theme);
    pen.context.setTransform(1, 0, 0, 1, 0, 0);
    pen.context.clearRect(0, 0, this.layer.width, this.layer.height);
    pen.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.kind.rest(pen, this.box, scene);
    this.right = true;
    return this.layer;
  }

  penOn(canvas, theme) {
    return new CanvasPen(canvas.getContext("2d"), theme);
  }
}

// Whether two pictures show the same lists of numbers; NaN is like NaN.
function alike(one, other) {
  return Boolean(one && other) && one.every((list, i) => list === other[i] || list.every((x, k) => Object.is(x, other[i][k])));
}
