// The pen of pen.js, writing SVG: every stroke stays a vector, every word stays text.

import { textWidth } from "./theme.js";
import { MIDDLE, bounds, diagonals } from "./pen.js";

export class SvgPen {
  constructor(theme) {
    this.theme = theme;
    this.marks = [];
    this.clips = 0;
  }

  line(points, { stroke, width = 1, dash = [] }) {
    const paint = painted({ stroke, width, dash });
    this.marks.push(`<polyline points="${pairs(points)}" ${paint} stroke-linejoin="round"/>`);
  }

  lines(segments, style) {
    for (const segment of segments) this.line(segment, style);
  }

  polygon(points, { fill }) {
    this.marks.push(`<polygon points="${pairs(points)}" fill="${fill}"/>`);
  }

  rect(x, y, w, h, style) {
    this.marks.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" ${painted(style)}/>`);
  }

  rects(boxes, style) {
    for (const [x, y, w, h] of boxes) this.rect(x, y, w, h, style);
  }

  circle(x, y, radius, style) {
    this.marks.push(`<circle cx="${n(x)}" cy="${n(y)}" r="${n(radius)}" ${painted(style)}/>`);
  }

  text(words, x, y, { fill, size = this.theme.small, weight = 400, align = "left", middle = false, turn = 0, halo = null }) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const edge = halo ? ` stroke="${halo}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"` : "";
    const degrees = turn ? ` rotate(${n((turn * 180) / Math.PI)})` : "";
    const down = n(middle ? size * MIDDLE : 0);
    this.marks.push(
      `<text transform="translate(${n(x)} ${n(y)})${degrees}" y="${down}" fill="${fill}" font-size="${n(size)}" ` +
        `font-weight="${weight}" text-anchor="${anchor}"${edge}>${escaped(words)}</text>`,
    );
  }

  width(words, size = this.theme.small, weight = 400) {
    return textWidth(words, this.theme, size, weight);
  }

  clipped(x, y, w, h, draw) {
    this.clipTo([[x, y, w, h]], draw);
  }

  cells(x, y, side, columns, codes, inks) {
    codes.forEach((code, i) => {
      const fill = inks.css[code];
      if (fill) this.rect(x + (i % columns) * side, y + Math.floor(i / columns) * side, side, side, { fill });
    });
  }

  hatch(boxes, stroke) {
    this.clipTo(boxes, () => {
      for (const stroked of diagonals(...bounds(boxes))) this.line(stroked, { stroke });
    });
  }

  clipTo(boxes, draw) {
    const id = `clip${++this.clips}`;
    const rects = boxes.map(([x, y, w, h]) => `<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}"/>`);
    this.marks.push(`<clipPath id="${id}">${rects.join("")}</clipPath><g clip-path="url(#${id})">`);
    draw();
    this.marks.push("</g>");
  }

  // The finished document.
  document(width, height, title) {
    const [w, h] = [n(width), n(height)];
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" ` +
      `font-family="${escaped(this.theme.family)}"><title>${escaped(title)}</title>${this.marks.join("\n")}</svg>`
    );
  }
}

function painted({ fill = "none", stroke = "none", width = 1, dash = [] }) {
  const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
  return `fill="${fill}" stroke="${stroke}" stroke-width="${width}"${dashes}`;
}

function n(value) {
  return String(Math.round(value * 100) / 100);
}

function pairs(points) {
  const list = [];
  for (let i = 0; i < points.length; i += 2) list.push(`${n(points[i])},${n(points[i + 1])}`);
  return list.join(" ");
}

function escaped(words) {
  return String(words).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}
