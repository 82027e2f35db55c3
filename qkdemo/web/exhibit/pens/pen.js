// A pen that draws on a canvas. SvgPen has the same methods, so every plot is drawn once and exported as real vectors.
//
// Points are flat lists [x, y, x, y, …]. Colours are CSS strings. Text is placed by its alphabetic base line, or by its middle.

import { font, textWidth } from "./theme.js";

export const MIDDLE = 0.35; // from a text's middle to its base line, in font sizes

export class CanvasPen {
  constructor(context, theme) {
    this.context = context;
    this.theme = theme;
  }

  line(points, { stroke, width = 1, dash = [] }) {
    const c = this.context;
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.lineJoin = "round";
    c.setLineDash(dash);
    c.beginPath();
    for (let i = 0; i < points.length; i += 2) c.lineTo(points[i], points[i + 1]);
    c.stroke();
    c.setLineDash([]);
  }

  // Many lines of one look, [x1, y1, x2, y2] each: one stroke costs far less than one for each.
  lines(segments, { stroke, width = 1 }) {
    const c = this.context;
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.beginPath();
    for (const [x1, y1, x2, y2] of segments) {
      c.moveTo(x1, y1);
      c.lineTo(x2, y2);
    }
    c.stroke();
  }

  polygon(points, { fill }) {
    const c = this.context;
    c.fillStyle = fill;
    c.beginPath();
    for (let i = 0; i < points.length; i += 2) c.lineTo(points[i], points[i + 1]);
    c.fill();
  }

  rect(x, y, w, h, { fill, stroke, width = 1 }) {
    const c = this.context;
    if (fill) {
      c.fillStyle = fill;
      c.fillRect(x, y, w, h);
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.strokeRect(x, y, w, h);
    }
  }

  // Many boxes [x, y, w, h] of one colour: one fill.
  rects(boxes, { fill }) {
    const c = this.context;
    c.fillStyle = fill;
    c.beginPath();
    for (const [x, y, w, h] of boxes) c.rect(x, y, w, h);
    c.fill();
  }

  circle(x, y, radius, { fill, stroke, width = 1, dash = [] }) {
    const c = this.context;
    c.beginPath();
    c.arc(x, y, radius, 0, 2 * Math.PI);
    if (fill) {
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.setLineDash(dash);
      c.stroke();
      c.setLineDash([]);
    }
  }

  text(words, x, y, { fill, size = this.theme.small, weight = 400, align = "left", middle = false, turn = 0, halo = null }) {
    const c = this.context;
    const down = middle ? size * MIDDLE : 0;
    this.setFont(size, weight);
    c.textAlign = align;
    c.fillStyle = fill;
    if (turn) {
      c.save();
      c.translate(x, y);
      c.rotate(turn);
      c.fillText(words, 0, down);
      c.restore();
      return;
    }
    if (halo) {
      c.strokeStyle = halo;
      c.lineWidth = 4;
      c.lineJoin = "round";
      c.strokeText(words, x, y + down);
    }
    c.fillText(words, x, y + down);
  }

  // Reading a font is slow in every browser; most words in a row share theirs.
  setFont(size, weight) {
    const wanted = font(this.theme, size, weight);
    if (wanted === this.font) return;
    this.context.font = wanted;
    this.font = wanted;
  }

  width(words, size = this.theme.small, weight = 400) {
    return textWidth(words, this.theme, size, weight);
  }

  clipped(x, y, w, h, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, w, h);
    this.context.clip();
    draw();
    this.context.restore();
  }

  // A matrix of square cells: one byte per cell, `inks` has a packed and a CSS colour for each byte (null: leave blank).
  cells(x, y, side, columns, codes, inks) {
    const rows = codes.length / columns;
    const { image, pixels, canvas } = this.matrix(columns, rows);
    for (let i = 0; i < codes.length; i++) pixels[i] = inks.packed[codes[i]];
    canvas.getContext("2d").putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(canvas, x, y, side * columns, side * rows);
  }

  matrix(columns, rows) {
    if (this.cached?.columns !== columns || this.cached?.rows !== rows) {
      const canvas = document.createElement("canvas");
      canvas.width = columns;
      canvas.height = rows;
      const image = new ImageData(columns, rows);
      this.cached = { columns, rows, canvas, image, pixels: new Uint32Array(image.data.buffer) };
    }
    return this.cached;
  }

  // Boxes [x, y, w, h] filled with diagonal lines.
  hatch(boxes, stroke) {
    const c = this.context;
    c.save();
    c.beginPath();
    for (const [x, y, w, h] of boxes) c.rect(x, y, w, h);
    c.clip();
    const [left, top, right, bottom] = bounds(boxes);
    c.strokeStyle = stroke;
    c.lineWidth = 1;
    c.beginPath();
    for (const [x1, y1, x2, y2] of diagonals(left, top, right, bottom)) {
      c.moveTo(x1, y1);
      c.lineTo(x2, y2);
    }
    c.stroke();
    c.restore();
  }
}

export function bounds(boxes) {
  return [
    Math.min(...boxes.map((b) => b[0])),
    Math.min(...boxes.map((b) => b[1])),
    Math.max(...boxes.map((b) => b[0] + b[2])),
    Math.max(...boxes.map((b) => b[1] + b[3])),
  ];
}

export function* diagonals(left, top, right, bottom, step = 4) {
  const height = bottom - top;
  for (let x = left - height; x < right; x += step) yield [x, bottom, x + height, top];
}
