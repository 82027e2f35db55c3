// Entry point: what Streamlit calls on every change of data or theme.
//
// One Stage per mounted component; the same Stage is shown the new data, so that nothing is rebuilt or loses its focus.

import { LiveStage } from "./livestage.js";
import { Stage } from "./stage.js";

const stages = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".exhibit");
  if (!root || !data || !data.table || !data.view) return undefined;
  const view = JSON.parse(data.view);
  if (!stages.has(root)) stages.set(root, view.live ? new LiveStage(root) : new Stage(root));
  const stage = stages.get(root);
  stage.send = (pick) => setTriggerValue("pick", pick);
  stage.show(data.table, view);
  return () => setTimeout(() => closeIfGone(root, stage), 0);
}

// Streamlit also calls the clean-up of a run that newer data overtook; only an element that left the page is closed.
function closeIfGone(root, stage) {
  if (root.isConnected) return;
  stage.close();
  stages.delete(root);
}
