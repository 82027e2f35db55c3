// How a number is written for those who hear it, and how a sentence takes its values: as `qkdemo/notation.py` writes it. `signs` are the words of the view: in
// another language than English they hold its signs (`notation.signs`).

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function written(x, digits = 4, signs = {}) {
  if (Number.isNaN(x)) return "NaN";
  if (x < 0) return `−${written(-x, digits, signs)}`;
  if (x === Infinity) return "∞";
  if (x === 0) return "0";
  const rounded = Number(x.toPrecision(digits));
  if (rounded >= 0.01 && rounded < 1e7) return grouped(String(rounded), signs);
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  return `${grouped(String(Number(mantissa)), signs)}·10${[...String(Number(exponent))].map((letter) => RAISED[letter]).join("")}`;
}

export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function grouped(text, { decimal = ".", group = "\u202f", further = "3" }) {
  const [whole, rest] = text.split(".");
  const thousands = whole.replace(new RegExp(`\\B(?=(?:\\d{${further}})*\\d{3}$)`, "g"), group);
  return rest ? `${thousands}${decimal}${rest}` : thousands;
}
