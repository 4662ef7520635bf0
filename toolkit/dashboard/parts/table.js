// What tables of ours share.

// An element made of text alone.
function made(tag, into, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  into.append(element);
  return element;
}

// The places of values in their order, those of nulls last.
function inOrder(values, falling) {
  const way = falling ? -1 : 1;
  return [...values.keys()].sort((a, b) => {
    if (values[a] === values[b]) return a - b;
    if (values[a] === null) return 1;
    if (values[b] === null) return -1;
    return values[a] < values[b] ? -way : way;
  });
}

// The heading of a column, with its button. Where falling is undefined, rows are not sorted by it.
function drawHead(heads, name, className, falling) {
  const head = made("th", heads, undefined, className);
  head.scope = "col";
  const sorted = falling !== undefined;
  if (sorted) head.ariaSort = falling ? "descending" : "ascending";
  const button = made("button", head, name + (sorted ? (falling ? " ▾" : " ▴") : ""));
  button.type = "button";
  return button;
}
