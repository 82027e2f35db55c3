// Downloads one plot as PNG or SVG: with its title, its axis titles, the colours of the current theme, and below it how
// it was made: where the dial stood, the other dials, the versions and the page's address.

import { CanvasPen } from "./pen.js";
import { SvgPen } from "./svgpen.js";

const EDGE = 16;
const SHARPNESS = 2; // PNG pixels per CSS pixel
const LEAST = 320; // CSS pixels across, so that what stands below has room
const LEADING = 1.4; // from line to line, in font sizes

export function savePng(plot, scene) {
  const sheet = sheetFor(plot, scene);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(sheet.width * SHARPNESS);
  canvas.height = Math.round(sheet.height * SHARPNESS);
  const pen = new CanvasPen(canvas.getContext("2d"), scene.theme);
  pen.context.scale(SHARPNESS, SHARPNESS);
  drawSheet(pen, sheet, plot, scene);
  canvas.toBlob((blob) => download(blob, `${fileName(scene)}.png`), "image/png");
}

export function saveSvg(plot, scene) {
  const sheet = sheetFor(plot, scene);
  const pen = new SvgPen(scene.theme);
  drawSheet(pen, sheet, plot, scene);
  const words = pen.document(sheet.width, sheet.height, scene.panel.title);
  download(new Blob([words], { type: "image/svg+xml" }), `${fileName(scene)}.svg`);
}

function sheetFor(plot, scene) {
  const { theme, panel, measure } = scene;
  const size = theme.small * 1.2;
  const header = EDGE + size * 1.4 + (panel.subtitle ? theme.small * 1.6 : 0);
  const words = Math.max(measure(panel.title) * 1.35, measure(panel.subtitle ?? ""), LEAST);
  const box = { x: EDGE, y: header, w: Math.max(plot.box.w, words), h: plot.box.h + theme.small * 1.4 };
  const foot = madeOf(scene).flatMap((line) => wrapped(line, box.w, measure));
  const height = header + box.h + foot.length * theme.small * LEADING + 2 * EDGE;
  return { size, box, foot, width: box.w + 2 * EDGE, height };
}

function drawSheet(pen, sheet, plot, scene) {
  const { theme, panel } = scene;
  pen.rect(0, 0, sheet.width, sheet.height, { fill: theme.paper });
  pen.text(panel.title, EDGE, EDGE + sheet.size, { fill: theme.text, size: sheet.size, weight: 600 });
  if (panel.subtitle) pen.text(panel.subtitle, EDGE, EDGE + sheet.size * 1.4 + theme.small, { fill: theme.muted });
  const whole = { ...scene, axis: "below" };
  plot.kind.rest(pen, sheet.box, whole);
  plot.kind.live(pen, sheet.box, whole);
  const below = sheet.box.y + sheet.box.h + EDGE;
  sheet.foot.forEach((line, i) => pen.text(line, EDGE, below + (i + 1) * theme.small * LEADING, { fill: theme.muted }));
}

// How the picture was made, in lines.
function madeOf({ view, sweep, row }) {
  const { label, text } = view.dial;
  return [`${label}: ${sweep.text(text, row)}`, ...(view.made ?? "").split("\n"), window.location.href].filter(Boolean);
}

// A line in lines that are no wider than `room`, cut at spaces; what is longer than a line, where it must be.
export function wrapped(line, room, measure) {
  const lines = [""];
  for (const word of line.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (measure(longer) <= room) lines[lines.length - 1] = longer;
    else lines.push(...pieces(word, room, measure));
  }
  return lines.filter(Boolean);
}

function pieces(word, room, measure) {
  const found = [""];
  for (const sign of word) {
    if (found.at(-1) && measure(found.at(-1) + sign) > room) found.push("");
    found[found.length - 1] += sign;
  }
  return found;
}

function fileName({ panel, sweep, view, row }) {
  const words = `${panel.title} ${sweep.text(view.dial.text, row)}`;
  return words.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
