// Colours and fonts, read from the variables that Streamlit gives to components, so that light, dark and custom themes follow.
//
// A role has one colour on every page and, as the second cue, one dash.

const ROLES = { plain: 0, norm: 1, bound: 2, right: 4 }; // their places in --st-chart-categorical-colors

export const DASH = { plain: [6, 4], norm: [], bound: [2, 3], other: [9, 3, 2, 3], left: [], right: [11, 4] };

const widths = new Map();
const MOST_WIDTHS = 5000;
const scratch = document.createElement("canvas").getContext("2d");

const FORCED = window.matchMedia("(forced-colors: active)");
const PAPER = window.matchMedia("print");
const SYSTEM = { plain: "CanvasText", norm: "LinkText", bound: "CanvasText", right: "LinkText" }; // told apart by their dashes, too
const [WHITE, BLACK] = [[255, 255, 255], [0, 0, 0]];
const DARKER = 0.35; // of a dark theme's colours, on white paper
const PALE = 118; // the luma of the grey that has a contrast of 4.5 : 1 with white

// Called when the page is printed or is a screen's again, and when the system's colours are asked for or no more.
export function whenLookChanges(act, signal) {
  for (const query of [FORCED, PAPER]) query.addEventListener("change", act, { signal });
}

// In a lecture nothing is grey, and lines are thicker: a projector washes out what a screen still shows.
export function readTheme(root, lecture = false) {
  const [css, forced, paper] = [getComputedStyle(root), FORCED.matches, PAPER.matches];
  const read = (name) => css.getPropertyValue(name).trim();
  const system = (name) => systemColour(root, name);
  const background = forced ? system("Canvas") : rgb(read("--st-background-color"), WHITE);
  const text = forced ? system("CanvasText") : rgb(read("--st-text-color"), BLACK);
  const palette = read("--st-chart-categorical-colors").split(/,(?![^(]*\))/);
  const strong = lecture || forced;
  const small = (parseFloat(css.fontSize) * 12) / 14; // the page's 14 px text has 12 px labels
  const theme = {
    background,
    text: css3(text),
    paper: css3(background),
    muted: css3(mix(background, text, strong ? 1 : 0.7)),
    rule: css3(mix(background, text, strong ? 0.8 : 0.5)),
    grid: css3(mix(background, text, strong ? 0.25 : 0.12)),
    band: css3(mix(background, text, strong ? 0.12 : 0.07)),
    family: css.fontFamily,
    small,
    zoom: (small / 12) * (lecture ? 1.25 : 1), // lines and dots grow with the text
    ink: { other: mix(background, text, 0.62), left: text },
  };
  for (const [role, place] of Object.entries(ROLES)) {
    const ink = rgb(palette[place], text);
    theme.ink[role] = forced ? system(SYSTEM[role]) : paper && luma(ink) > PALE ? mix(ink, BLACK, DARKER) : ink;
  }
  theme.role = Object.fromEntries(Object.entries(theme.ink).map(([role, ink]) => [role, css3(ink)]));
  theme.soft = Object.fromEntries(Object.entries(theme.ink).map(([role, ink]) => [role, css3(mix(background, ink, 0.5))]));
  theme.name = JSON.stringify(theme);
  return theme;
}

// Hands the colours that the style sheet cannot work out itself to the page.
export function wearTheme(root, theme) {
  root.style.setProperty("--muted", theme.muted);
  root.style.setProperty("--grid", theme.grid);
  for (const [role, colour] of Object.entries(theme.role)) root.style.setProperty(`--${role}`, colour);
}

export function mix(from, to, share) {
  return from.map((value, channel) => Math.round(value + (to[channel] - value) * share));
}

function luma([red, green, blue]) {
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function css3([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

export function font(theme, size, weight) {
  return `${weight} ${size}px ${theme.family}`;
}

// A text is measured once: what is written while the dial moves has mostly been written before.
export function textWidth(words, theme, size, weight = 400) {
  const written = font(theme, size, weight);
  const key = `${written} ${words}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  if (widths.size > MOST_WIDTHS) widths.clear();
  scratch.font = written;
  const { width } = scratch.measureText(words);
  widths.set(key, width);
  return width;
}

// Other letters have other widths: a font came.
export function forgetWidths() {
  widths.clear();
}

// One of the system's colours, as the page has it.
function systemColour(root, name) {
  const probe = document.createElement("span");
  probe.style.cssText = `color: ${name}; forced-color-adjust: none`;
  root.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return rgb(colour, BLACK);
}

// Any CSS colour as three channels; the canvas itself is the parser.
function rgb(colour, fallback) {
  if (!colour) return fallback;
  scratch.fillStyle = css3(fallback);
  scratch.fillStyle = colour.trim();
  const parsed = String(scratch.fillStyle);
  if (parsed.startsWith("#")) return [1, 3, 5].map((at) => parseInt(parsed.slice(at, at + 2), 16));
  return parsed.match(/[\d.]+/g).slice(0, 3).map(Number);
}
