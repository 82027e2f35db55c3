// Play: the dial runs by itself, from where it stands or again from its beginning, until its end or until any hand.

const WHOLE_MS = 9000; // from end to end
export const CALM_MS = 700; // for whoever asked for less motion: in steps
export const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");

// What the button of a dial does: play, or, while it plays, pause there.
export function playOrPause(stage) {
  if (stage.plays) stage.commit(stage.row());
  else play(stage);
}

function play(stage) {
  const { sweep } = stage;
  const [first, last] = stage.open;
  const from = stage.row() < last ? stage.row() : first;
  const [start, end] = [sweep.places[from], sweep.places[last]];
  const calm = CALM.matches;
  const began = performance.now();
  const playing = stage.begin({ plays: true });
  const turn = (now) => {
    if (stage.playing !== playing) return; // a hand took over
    const past = Math.max(0, now - began);
    const place = Math.min(end, start + (calm ? Math.floor(past / CALM_MS) * CALM_MS : past) / WHOLE_MS);
    if (place >= end) return void stage.commit(last);
    stage.goTo(sweep.rowAt(place));
    requestAnimationFrame(turn);
  };
  requestAnimationFrame(turn);
}
