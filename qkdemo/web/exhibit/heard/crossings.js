// Where lines cross: the sign of their difference changes, and on either side the difference is more than noise.

const MOST = 3; // crossings that are named; lines that cross more often are near each other
const SENT = 2 ** -22; // relative: most numbers are sent as float32, and each of the two was rounded

export function crossings(lines, scene) {
  const found = [];
  for (const [i, a] of lines.entries()) {
    for (const b of lines.slice(i + 1)) for (const at of crossed(a, b, scene)) found.push({ one: a.name, other: b.name, at });
  }
  return found.length <= MOST ? found : [];
}

function crossed(a, b, { sweep, panel, open: [first, last] }) {
  const [one, other] = [sweep.numbers(a.column), sweep.numbers(b.column)];
  const found = [];
  let before = null;
  for (let at = first; at <= last; at++) {
    const sign = signOf(one[at], other[at], panel);
    if (Number.isNaN(sign)) before = null; // over what is not known nothing crosses
    else if (sign) {
      if (before && sign !== before.sign) found.push(Math.ceil((before.at + at) / 2));
      before = { sign, at };
    }
  }
  return found;
}

// Which of two numbers is above the other, as far as their axis shows it; 0 where they are the same but for noise.
function signOf(one, other, { y, noise = 0 }) {
  const [low, high] = y.domain;
  const [a, b] = y.log ? [one, other].map((x) => Math.max(x, low)) : [one, other];
  if (a === b) return 0;
  if (!Number.isFinite(a - b)) return Math.sign(a - b);
  const size = Math.max(Math.abs(a), Math.abs(b), y.log ? 0 : high - low);
  return Math.abs(a - b) > Math.max(SENT, noise) * size ? Math.sign(a - b) : 0;
}
