// A text whose words drive the chart beside it: pointing at one shows its state or its lines there, pressing it turns dials.
//
// The exhibit listens on the document for `qkdemo:look`: {turns: {dial: value}}, {role}, or {} when the look is over.

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".prose");
  if (!root || !data?.words) return undefined;
  const words = JSON.parse(data.words);
  const nodes = words.map((word, at) => wordNode(word, () => setTriggerValue("turn", at)));
  root.replaceChildren(...nodes);
  nodes.forEach(keepStop);
  return () => look({});
}

// A comma or a full stop stays on the line of what it follows.
function keepStop(node) {
  const next = node.nextSibling?.firstChild;
  const [stop] = (node.matches("button, a, span:has(> button)") && next?.nodeType === Node.TEXT_NODE && /^[.,;:!?)]+/.exec(next.nodeValue)) || [];
  if (!stop) return;
  next.nodeValue = next.nodeValue.slice(stop.length);
  const whole = document.createElement("span");
  whole.className = "unbroken";
  node.replaceWith(whole);
  whole.append(node, stop);
}

function wordNode(word, press) {
  if (word.link) return word.name ? termNode(word) : sourceNode(word);
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

// A source: a link, whose title says what it is.
function sourceNode(word) {
  const link = document.createElement("a");
  Object.assign(link, { href: word.link, target: "_blank", rel: "noopener", title: word.says, textContent: word.text });
  return link;
}

// A word of the field: pressed, it opens its entry over the page; the entry leads to the glossary.
function termNode(word) {
  const whole = document.createElement("span");
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "term", title: word.says, textContent: word.text });
  const entry = document.createElement("span");
  entry.className = "entry";
  entry.popover = "auto";
  button.popoverTargetElement = entry;
  button.onclick = () => {
    if (!entry.childNodes.length) entry.append(...entryNodes(word)); // until then the text holds its own words alone
    place(entry, button);
  };
  whole.append(button, entry);
  return whole;
}

function entryNodes(word) {
  const name = document.createElement("a");
  Object.assign(name, { href: word.link, target: "_blank", textContent: word.name });
  const picture = document.createElement("span");
  picture.innerHTML = word.figure; // drawn by the server
  const formula = document.createElement("code");
  formula.textContent = word.formula;
  return [name, picture, document.createTextNode(word.says), formula];
}

// Above or below the word, within the window.
function place(entry, button) {
  requestAnimationFrame(() => {
    const at = button.getBoundingClientRect();
    const size = entry.getBoundingClientRect();
    const below = at.bottom + 6;
    const top = below + size.height < innerHeight ? below : Math.max(6, at.top - size.height - 6);
    entry.style.left = `${Math.max(6, Math.min(at.left, innerWidth - size.width - 6))}px`;
    entry.style.top = `${top}px`;
  });
}

// Text whose `code` stands between back quotes.
function plain(text) {
  const whole = document.createElement("span");
  const nodes = text.split("`").map((part, at) => {
    if (at % 2 === 0) return document.createTextNode(part.replace(/(?<=\d) %/g, "\u00a0%"));
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
