// Entry point: what Streamlit calls on every change of data or theme.
//
// One Stage per mounted component; the same Stage is shown the new data, so that nothing is rebuilt or loses its focus.

import { LiveStage } from "./live/livestage.js";
import { canInflate, open } from "./rows/parcel.js";
import { Stage } from "./stage.js";

const stages = new WeakMap();
const turns = new WeakMap(); // what came first is shown first, however long it takes to open
const opened = new WeakMap(); // bytes → what is in them: they come again with every change of theme

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".exhibit");
  if (!root || !(data instanceof Uint8Array)) return undefined;
  if (!opened.has(data)) opened.set(data, open(data));
  const turn = Promise.all([opened.get(data), turns.get(root)]).then(([content]) => {
    if (content && root.isConnected) show(root, content, setTriggerValue);
    else if (!content) setTriggerValue("pick", { again: canInflate ? 0 : 1 });
  });
  turns.set(root, turn.catch(() => {}));
  return () => setTimeout(() => closeIfGone(root), 0);
}

function show(root, content, setTriggerValue) {
  if (!stages.has(root)) stages.set(root, content.view.live ? new LiveStage(root) : new Stage(root));
  const stage = stages.get(root);
  stage.send = (pick) => setTriggerValue("pick", pick);
  stage.show(content, content.view);
  root.dispatchEvent(new CustomEvent("qkdemo:drawn", { bubbles: true, composed: true })); // the first picture may go
}

// Streamlit also calls the clean-up of a run that newer data overtook; only an element that left the page is closed.
function closeIfGone(root) {
  if (root.isConnected) return;
  stages.get(root)?.close();
  stages.delete(root);
}
