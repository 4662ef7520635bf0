// What tables of ours share: an element is made of text alone.
function made(tag, into, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  into.append(element);
  return element;
}
