// Entry point: what Streamlit calls on every change of data or theme. One Stage per mounted component.
//
// `data.view` is JSON: state (see plane.js), names (of query and keys), words (sentences with {names}), limits ({name:
// [low, high]} of scale, length), heading (level of the headline), lecture, locked (a track's question is open: nothing
// moves), table (whether keyboard and hands may change single arrows). Picks go back as {dial: value} of what changed.

import { Stage } from "./stage.js";

const stages = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".arrows");
  if (!root || !data?.view) return undefined;
  if (!stages.has(root)) stages.set(root, new Stage(root));
  const stage = stages.get(root);
  stage.send = (pick) => setTriggerValue("pick", pick);
  stage.show(JSON.parse(data.view));
  root.dispatchEvent(new CustomEvent("qkdemo:drawn", { bubbles: true, composed: true })); // the first picture may go
  return () => setTimeout(() => closeIfGone(root, stage), 0);
}

// Streamlit also calls the clean-up of a run that newer data overtook; only an element that left the page is closed.
function closeIfGone(root, stage) {
  if (root.isConnected) return;
  stage.close();
  stages.delete(root);
}
