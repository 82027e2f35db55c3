// On a phone an explanation that comes would push away the picture in which the answer is seen: it stays in sight.

const PHONE = "(max-width: 640px)"; // where the picture stands under a track's question
const PICTURE = "figure.focus, svg.plane, [data-testid=stPlotlyChart]";
const HANDS = ["pointerdown", "touchstart", "wheel", "keydown"];
const WHILE_MS = 2500; // until all of the page has come

/** @type {() => void} */
let end = () => undefined; // of the last one

export function keepInSight() {
  const main = document.querySelector("[data-testid=stMain]");
  if (!main || !matchMedia(PHONE).matches) return;
  end();
  const bring = () => pictureIn(main)?.scrollIntoView({ block: "nearest", behavior: "instant" });
  const sizes = new ResizeObserver(bring);
  for (const part of main.querySelectorAll("[data-testid=stVerticalBlock]")) sizes.observe(part);
  const over = new AbortController();
  const stop = () => {
    sizes.disconnect();
    over.abort();
  };
  setTimeout(stop, WHILE_MS);
  for (const kind of HANDS) addEventListener(kind, stop, { signal: over.signal, capture: true });
  end = stop;
  bring();
}

// The first picture in the page's order, in whichever component it stands.
function pictureIn(root) {
  for (const node of root.querySelectorAll("*")) {
    const found = node.matches(PICTURE) ? node : node.shadowRoot && pictureIn(node.shadowRoot);
    if (found) return found;
  }
  return null;
}
