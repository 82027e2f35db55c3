// Downloads one plot as PNG or SVG: with its title, its axis titles and the colours of the current theme.

import { CanvasPen } from "./pen.js";
import { SvgPen } from "./svgpen.js";

const EDGE = 16;
const SHARPNESS = 2; // PNG pixels per CSS pixel

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

function sheetFor(plot, { theme, panel, measure }) {
  const size = theme.small * 1.2;
  const header = EDGE + size * 1.4 + (panel.subtitle ? theme.small * 1.6 : 0);
  const words = Math.max(measure(panel.title) * 1.35, measure(panel.subtitle ?? ""));
  const box = { x: EDGE, y: header, w: Math.max(plot.box.w, words), h: plot.box.h + theme.small * 1.4 };
  return { size, box, width: box.w + 2 * EDGE, height: header + box.h + EDGE };
}

function drawSheet(pen, sheet, plot, scene) {
  const { theme, panel } = scene;
  pen.rect(0, 0, sheet.width, sheet.height, { fill: theme.paper });
  pen.text(panel.title, EDGE, EDGE + sheet.size, { fill: theme.text, size: sheet.size, weight: 600 });
  if (panel.subtitle) pen.text(panel.subtitle, EDGE, EDGE + sheet.size * 1.4 + theme.small, { fill: theme.muted });
  const whole = { ...scene, axis: "below" };
  plot.kind.rest(pen, sheet.box, whole);
  plot.kind.live(pen, sheet.box, whole);
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
