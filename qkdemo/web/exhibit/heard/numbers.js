// How a number is written for those who hear it: as `qkdemo/notation.py` writes it.

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function written(x, digits = 4) {
  if (Number.isNaN(x)) return "NaN";
  if (x < 0) return `−${written(-x, digits)}`;
  if (x === Infinity) return "∞";
  if (x === 0) return "0";
  const rounded = Number(x.toPrecision(digits));
  if (rounded >= 0.01 && rounded < 1e7) return grouped(String(rounded));
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  return `${Number(mantissa)}·10${[...String(Number(exponent))].map((letter) => RAISED[letter]).join("")}`;
}

function grouped(text) {
  const [whole, rest] = text.split(".");
  const thousands = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return rest ? `${thousands}.${rest}` : thousands;
}
