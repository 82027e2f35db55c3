// Pointer and keyboard: turns what the visitor's hands do into calls of the stage (preview, settle, commit, choose, pick).

const IDLE_MS = 150; // a held arrow key commits once, when it rests

// The range input: previews on input, commits on change.
export function holdScrubber(range, stage) {
  let keyed = false;
  let timer = 0;
  range.onkeydown = () => {
    keyed = true;
  };
  range.onpointerdown = () => {
    keyed = false;
  };
  range.oninput = () => stage.preview(Number(range.value));
  range.onchange = () => {
    clearTimeout(timer);
    const commit = () => stage.commit(Number(range.value));
    if (keyed) timer = setTimeout(commit, IDLE_MS);
    else commit();
  };
}

// A curves panel: hovering previews, press-drag-release (or a tap) commits. Touch leaves vertical panning to the page.
// `stage.press` is the pointer that is down; Escape lets go of it. Where a number is to be predicted, the hand draws that.
export function holdCurves(canvas, rowAt, guessAt, stage) {
  const preview = (event) => {
    const guess = guessAt(event.offsetX, event.offsetY);
    if (guess !== null) stage.sketch(guess);
    else stage.preview(rowAt(event.offsetX));
  };
  canvas.onpointermove = (event) => {
    if (event.pointerType === "mouse" || event.pointerId === stage.press) preview(event);
  };
  canvas.onpointerdown = (event) => {
    if (event.button !== 0) return;
    stage.press = event.pointerId;
    canvas.setPointerCapture(event.pointerId);
    preview(event);
  };
  canvas.onpointerup = (event) => {
    if (event.pointerId !== stage.press) return;
    stage.press = null;
    const guess = guessAt(event.offsetX, event.offsetY);
    if (guess !== null) stage.guess(guess);
    else stage.commit(rowAt(event.offsetX));
  };
  canvas.onpointercancel = () => {
    stage.press = null;
    stage.settle();
  };
  canvas.onpointerleave = () => {
    if (stage.press === null) stage.settle();
  };
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// A matrix or a row of bars: a click picks, arrow keys move the choice, Enter or Space picks it; `point`, where a grid
// has it, is told what a hovering pointer stands on.
// `grid`: under(x, y) gives [query, key] or null, now() the present choice, size the numbers of queries and keys.
export function holdGrid(area, canvas, grid, stage) {
  canvas.onclick = (event) => {
    const cell = grid.under(event.offsetX, event.offsetY);
    if (cell) stage.pickCell(grid, cell);
  };
  canvas.onpointermove = (event) => event.pointerType === "mouse" && grid.point?.(grid.under(event.offsetX, event.offsetY));
  canvas.onpointerleave = () => grid.point?.(null);
  area.onkeydown = (event) => {
    if (event.key === "Enter" || event.key === " ") stage.pickCell(grid, grid.now());
    else if (event.key in STEPS) stage.choose(grid, moved(grid, STEPS[event.key]));
    else return;
    event.preventDefault();
  };
}

// A table of cells: the same, but the choice is where the focus is.
export function holdTable(table, grid, stage) {
  table.node.onclick = (event) => {
    const cell = table.at(event.target);
    if (cell) stage.pickCell(grid, cell);
  };
  table.node.onkeydown = (event) => {
    if (event.key === "Enter" || event.key === " ") stage.pickCell(grid, grid.now());
    else if (event.key in STEPS) {
      const cell = table.next(grid.now(), STEPS[event.key]);
      stage.choose(grid, cell);
      table.focus(cell);
    } else return;
    event.preventDefault();
  };
}

function moved(grid, step) {
  return grid.now().map((at, i) => Math.max(0, Math.min(grid.size[i] - 1, at + step[i])));
}
