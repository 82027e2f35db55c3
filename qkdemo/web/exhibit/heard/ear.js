// A chart by ear: its curves as pitch from one end of the dial to the other, while the dial goes along.
//
// Fetched and sounded when it is asked for, never before. Higher on the axis is a higher pitch; a gap is silence; ∞ is the
// top of the axis. The first side is a bright sound on the left, the second a soft one on the right. Any hand ends it.

import { shareOf } from "../drawn/places.js";
import { CALM } from "../play.js";

const WHOLE_S = 5; // from end to end
const STEPS = 160;
const [LOW_HZ, OCTAVES] = [180, 3];
const SOUNDS = /** @type {[OscillatorType, number, number][]} */ ([["sawtooth", 0.05, -0.7], ["sine", 0.16, 0.7]]); // timbre, loudness, place

export function listen(stage, scene) {
  const { sweep, panel, open: [first, last] } = scene;
  const context = new AudioContext();
  const [start, end] = [sweep.places[first], sweep.places[last]];
  const rowAt = (share) => sweep.rowAt(start + (end - start) * share);
  panel.lines.slice(0, SOUNDS.length).forEach((line, i) => sound(context, SOUNDS[i], (share) => heightOf(sweep.numbers(line.column)[rowAt(share)], panel.y)));
  const playing = stage.begin({ hears: true });
  const turn = () => {
    const share = context.currentTime / WHOLE_S;
    if (stage.playing !== playing || share >= 1) {
      context.close();
      if (stage.playing === playing) stage.settle();
      return;
    }
    if (!CALM.matches) stage.goTo(rowAt(share));
    requestAnimationFrame(turn);
  };
  requestAnimationFrame(turn);
}

function sound(context, [type, loudness, place], heightAt) {
  const oscillator = new OscillatorNode(context, { type });
  const gain = new GainNode(context, { gain: 0 });
  oscillator.connect(gain).connect(new StereoPannerNode(context, { pan: place })).connect(context.destination);
  for (let step = 0; step <= STEPS; step++) {
    const [at, height] = [(step / STEPS) * WHOLE_S, heightAt(step / STEPS)];
    gain.gain.setTargetAtTime(height === null ? 0 : loudness, at, 0.01);
    if (height !== null) oscillator.frequency.setTargetAtTime(LOW_HZ * 2 ** (OCTAVES * height), at, 0.01);
  }
  oscillator.start();
  oscillator.stop(WHOLE_S);
}

// Where a value stands on its axis, from 0 to 1; null where there is none.
export function heightOf(value, axis) {
  if (Number.isNaN(value)) return null;
  const share = shareOf(axis.log ? Math.max(value, axis.domain[0]) : value, axis);
  return Math.min(1, Math.max(0, share));
}
