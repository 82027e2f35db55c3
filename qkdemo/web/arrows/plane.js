// Attention of one query over a few keys in the plane, plain and with QK norm, in float64.
//
// Head width two, so that what is drawn is all there is. `qkdemo.labs.arrows` computes the same in Python, and a test
// compares the two over thousands of states: this copy answers within the frame in which an arrow is dragged.

const ROOT_WIDTH = Math.SQRT2; // √d of head width two
const L2_FLOOR = 1e-12; // torch.nn.functional.normalize

// What a number format stores of a number.
export const STORE = {
  float64: (x) => x,
  float32: Math.fround,
  bfloat16: (x) => narrow(Math.fround(x), 7, -126, 3.3895313892515355e38),
  float16: (x) => narrow(Math.fround(x), 10, -14, 65504),
};

// Both sides of a state: {scale, gain, format, query: [length, degrees], keys: [[length, degrees], …]}.
export function attend({ scale, gain, format, query, keys }) {
  const store = STORE[format];
  const q = vector(query, scale, store);
  const k = keys.map((key) => vector(key, scale, store));
  return {
    plain: side(q, k, 1 / ROOT_WIDTH, store),
    norm: side(
      unit(q, store),
      k.map((key) => unit(key, store)),
      gain,
      store,
    ),
  };
}

// The scale, from that of the state on in steps of 5 %, at which a raw score is first ∞ or −∞; `most` if none is.
export function firstLost(state, most) {
  const lost = (scale) => attend({ ...state, scale }).plain.raw.some((score) => Math.abs(score) === Infinity);
  let at = state.scale;
  while (at < most && !lost(at)) at = Math.min(most, asKept(at * 1.05));
  return at;
}

// A scale as it is kept: with three digits.
export function asKept(scale) {
  return Number(scale.toPrecision(3));
}

// Lengths, raw scores and shares of one side; `counting` is how many keys count: e to the entropy.
function side(q, keys, factor, store) {
  const raw = keys.map((key) => store(q[0] * key[0] + q[1] * key[1]));
  const shares = softmax(raw.map((score) => store(score * factor)));
  return { q, keys, raw, shares, counting: Math.exp(shares.reduce((sum, p) => sum - (p === 0 ? 0 : p * Math.log(p)), 0)) };
}

export function softmax(logits) {
  const top = Math.max(...logits); // NaN if one is NaN
  const terms = logits.map((logit) => Math.exp(logit - top)); // ∞ − ∞ is NaN: such a row has no shares
  const sum = terms.reduce((total, term) => total + term, 0);
  return terms.map((term) => term / sum);
}

export function vector([length, degrees], scale, store) {
  const angle = (degrees * Math.PI) / 180;
  return [store(scale * length * Math.cos(angle)), store(scale * length * Math.sin(angle))];
}

function unit(arrow, store) {
  const [x, y] = arrow;
  const length = Math.max(Math.sqrt(Math.max(x * x + y * y, L2_FLOOR ** 2)), L2_FLOOR);
  return [store(x / length), store(y / length)];
}

// To nearest, ties to even, with `bits` of mantissa; subnormal below 2^least, ∞ beyond the largest number.
function narrow(x, bits, least, largest) {
  if (!Number.isFinite(x) || x === 0) return x;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), least);
  const step = 2 ** (exponent - bits);
  const whole = x / step;
  const floor = Math.floor(whole);
  const rest = whole - floor;
  const even = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
  const rounded = even * step;
  return Math.abs(rounded) > largest ? Math.sign(x) * Infinity : rounded;
}
