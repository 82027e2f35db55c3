// Keys that move over a map: arrows to the next cell, Home and End to the ends of its row, Enter to set both dials there,
// Escape to go back to where they stand. The server draws the cell and says its numbers; here stands only where the keys are,
// so that keys that follow each other quickly lose no step.

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], Home: [-1e6, 0], End: [1e6, 0] };
const QUIET_MS = 150; // a held key asks no more often

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".cross");
  if (!root || !data) return undefined;
  root.setAttribute("aria-label", data.label);
  root.querySelector(".said").textContent = data.said;
  root.querySelector(".hint").textContent = data.hint;
  const spoken = root.querySelector("[role=status]");
  if (root.matches(":focus") && spoken.textContent !== data.said) spoken.textContent = data.said;
  if (!root.timer) root.at = data.at; // nothing is on its way
  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    if (!step && event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (step) {
      root.at = moved(root.at, step, data.places);
      root.timer ??= setTimeout(() => {
        root.timer = null;
        setTriggerValue("moved", values(root.at, data.places));
      }, QUIET_MS);
      return;
    }
    clearTimeout(root.timer);
    root.timer = null;
    if (event.key === "Enter") setTriggerValue("chosen", values(root.at, data.places));
    else setTriggerValue("moved", "back");
  };
  return undefined;
}

// The cell a step away, within the map: `places` are the values of both dials.
export function moved(at, step, places) {
  return at.map((place, side) => Math.min(Math.max(0, place + step[side]), places[side].length - 1));
}

function values(at, places) {
  return at.map((place, side) => places[side][place]);
}
