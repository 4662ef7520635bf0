// Streamlit starts a part again with new data, and ends it only when it leaves the page. What one
// start set going, as a timer, has to end with the next, or each would go on with its own data.
export default function (component) {
  const { parentElement } = component;
  parentElement.end?.();
  parentElement.end = start(component);
  return () => parentElement.end?.();
}
