// How a number is written, and how a sentence takes its values.

export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// A share in whole per cent; what is neither nothing nor all is never written as 0 or 100.
export function percent(share) {
  if (Number.isNaN(share)) return "NaN";
  if (share > 0 && share < 0.005) return "< 1 %";
  if (share < 1 && share >= 0.995) return "> 99 %";
  return `${Math.round(100 * share)} %`;
}

// `words` are those of the view: in another language than English they hold its decimal sign.
export function short(x, { decimal = "." }) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const digits = Math.abs(x) >= 100 ? 0 : Math.abs(x) >= 10 ? 1 : 2;
  const rounded = Math.abs(x) < 0.1 ? x.toPrecision(2) : x.toFixed(digits); // a short arrow is not one of length 0
  return String(Number(rounded)).replace("-", "−").replace(".", decimal);
}
