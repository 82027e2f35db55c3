// Pointer and keyboard: an arrow's tip is dragged, or turned and lengthened by the arrow keys; the dial runs or is moved.

const TURN = 5; // degrees a key press; with Shift, 1
const GROW = 0.1; // length a key press
const KEYS = { ArrowLeft: [0, TURN], ArrowRight: [0, -TURN], ArrowUp: [GROW, 0], ArrowDown: [-GROW, 0] };
const IDLE_MS = 250; // a held key is told to the server once, when it rests

// The arrows of one side. `side.toArrow(x, y)` says which length and angle a place on the drawing means; a side whose arrows
// all have one length says the angle alone. Where tips lie close together, the nearest is taken hold of.
export function holdSide(side, stage) {
  const place = (event) => {
    const box = side.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let held = null;
  side.svg.onpointerdown = (event) => {
    if (event.button !== 0 || stage.view.locked || stage.held || !event.target.closest(".arrow")) return;
    stage.motion.stop();
    stage.held = event.pointerId;
    held = side.nearest(...place(event));
    held.handle.setPointerCapture(event.pointerId);
    held.handle.classList.add("held");
    if (held.handle.hasAttribute("tabindex")) held.handle.focus({ preventScroll: true });
    event.preventDefault();
  };
  side.svg.onpointermove = (event) => {
    if (!held || event.pointerId !== stage.held) return;
    const [length, degrees] = side.toArrow(...place(event));
    const now = stage.arrowAt(held.place);
    stage.turnTo(held.place, [side.freeLength ? length / stage.state.scale : now[0], degrees]);
  };
  side.svg.onpointerup = side.svg.onpointercancel = (event) => {
    if (!held || event.pointerId !== stage.held) return;
    held.handle.classList.remove("held");
    stage.held = held = null;
    stage.rest();
  };
  for (const arrow of side.arrows) holdKeys(arrow, stage);
}

function holdKeys({ handle, place }, stage) {
  let timer = 0;
  handle.onkeydown = (event) => {
    const step = KEYS[event.key];
    if (!step || stage.view.locked || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    stage.motion.stop();
    const [length, degrees] = stage.arrowAt(place);
    const turn = event.shiftKey ? Math.sign(step[1]) : step[1];
    stage.turnTo(place, [length + step[0], degrees + turn]);
    clearTimeout(timer);
    timer = setTimeout(() => stage.rest(), IDLE_MS);
  };
}

export function holdControls({ play, range, turn, infinity, again }, stage) {
  let timer = 0;
  play.onclick = () => (stage.motion.going ? stage.motion.halt() : stage.motion.grow());
  turn.onclick = () => stage.motion.turn();
  infinity.onclick = () => stage.motion.overflow();
  again.onclick = () => stage.startAgain();
  range.onpointerdown = () => stage.motion.stop();
  range.oninput = () => {
    stage.motion.stop();
    stage.scaleTo(10 ** Number(range.value));
    clearTimeout(timer);
    timer = setTimeout(() => stage.rest(), IDLE_MS);
  };
}
