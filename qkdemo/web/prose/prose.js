// A text whose words drive the chart beside it: pointing at one shows its state or its lines there, pressing it turns dials.
//
// The exhibit listens on the document for `qkdemo:look`: {turns: {dial: value}}, {role}, or {} when the look is over.

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".prose");
  if (!root || !data?.words) return undefined;
  const words = JSON.parse(data.words);
  const fresh = !root.hasChildNodes();
  root.replaceChildren(...words.map((word, at) => wordNode(word, () => setTriggerValue("turn", at))));
  if (fresh && data.lecture) requestAnimationFrame(() => root.scrollIntoView({ block: "end", behavior: "smooth" }));
  return () => look({});
}

function wordNode(word, press) {
  const turns = Object.keys(word.turns).length > 0;
  if (!turns && !word.role) return plain(word.text);
  const button = document.createElement("button");
  button.type = "button";
  button.className = turns ? "turns" : `picks ${word.role}`;
  button.textContent = word.text;
  const detail = turns ? { turns: word.turns } : { role: word.role };
  button.onpointerenter = button.onfocus = () => look(detail);
  button.onpointerleave = button.onblur = () => look({});
  if (turns) button.onclick = press;
  return button;
}

// Text whose `code` stands between back quotes.
function plain(text) {
  const whole = document.createElement("span");
  const nodes = text.split("`").map((part, at) => {
    if (at % 2 === 0) return document.createTextNode(part);
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
  whole.append(...nodes);
  return whole;
}

function look(detail) {
  document.dispatchEvent(new CustomEvent("qkdemo:look", { detail }));
}
