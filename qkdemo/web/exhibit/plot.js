// One plot on its canvas: sharp on every screen, with what does not follow the cursor kept on a layer of its own.

import { CanvasPen } from "./pen.js";
import * as arrows from "./arrows.js";
import * as bars from "./bars.js";
import * as curves from "./curves.js";
import * as heat from "./heat.js";

export const KINDS = { arrows, bars, curves, heat };

export class Plot {
  constructor(canvas, kind) {
    this.canvas = canvas;
    this.kind = KINDS[kind];
    this.pen = null;
    this.layer = null; // the resting layer
    this.right = false; // whether it is
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
    this.layer = null;
    this.right = false;
    return true;
  }

  // The resting layer is no longer right: other data, another theme, another selection.
  forget() {
    this.right = false;
  }

  draw(scene) {
    if (!this.box.w || !this.box.h) return;
    if (!this.pen || this.pen.theme !== scene.theme) this.pen = this.penOn(this.canvas, scene.theme);
    const { context } = this.pen;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.rested(scene), 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.kind.live(this.pen, this.box, scene);
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
