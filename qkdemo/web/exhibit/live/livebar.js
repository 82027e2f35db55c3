// The controls of a run that one watches: play, step, stop, train, the forks, and what is said of the run.

import { AT_REST } from "../rows/feed.js";

// What a press of each does.
export function holdBar(stage) {
  const { play, step, stop, train } = stage.parts.bar;
  press(play, () => stage.playOrPause());
  press(step, () => stage.oneStep());
  press(stop, () => stage.send({ command: "stop" }));
  press(train, () => stage.send({ command: "train" }));
}

// The forks' buttons: each goes on from the step that is on screen when it is pressed.
export function fillForks(stage) {
  const { forks, lead } = stage.parts.bar;
  const offered = stage.view.veil ? [] : (stage.view.live.forks ?? []);
  const labels = offered.map(({ label }) => label).join("\n");
  forks.hidden = !offered.length || !stage.sweep.rows;
  setText(lead, (stage.view.live.lead ?? "").replace("{step}", String(stage.row() + 1)));
  if (forks.dataset.labels === labels) return;
  forks.dataset.labels = labels;
  const buttons = offered.map(({ label, help }, fork) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: label, title: help });
    button.onclick = () => stage.send({ fork, dial: stage.row() + 1 });
    return button;
  });
  forks.replaceChildren(lead, ...buttons);
}

// How they stand.
export function fillBar(stage) {
  const { play, step, stop, train, text, notice } = stage.parts.bar;
  const { words, live } = stage.view;
  play.textContent = stage.moving ? words.pause : words.play;
  step.textContent = words.step;
  stop.textContent = words.stop;
  train.textContent = words.train;
  stop.hidden = live.shipped; // nobody trains it here: it can be played, or trained
  train.hidden = !live.shipped;
  allow(play, stage.commands || stage.sweep.rows >= 2);
  allow(step, stage.commands ? !stage.moving : stage.row() < stage.sweep.rows - 1);
  allow(stop, live.own && !AT_REST.has(stage.status.state));
  setText(text, stage.gone ? words[whyGone(stage.feed)] : stage.status.text);
  setText(notice, stage.status.notice);
  notice.hidden = !stage.status.notice;
}

// What does nothing now keeps the focus: who has just pressed it goes on from there.
function allow(button, allowed) {
  button.setAttribute("aria-disabled", String(!allowed));
}

function press(button, act) {
  button.onclick = () => button.ariaDisabled !== "true" && act();
}

function setText(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function whyGone({ restarting, full }) {
  if (full) return "full";
  return restarting ? "restarting" : "offline";
}
