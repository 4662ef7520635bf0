// A button that copies the page's address, in which everything that was chosen is.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function start(component) {
  const place = component.parentElement.querySelector("#share");
  if (place.firstChild) return;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Share";
  button.title = "Copy the link to what is shown";
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  button.onclick = async () => {
    await copy(location.href);
    said.textContent = "Link copied";
    setTimeout(() => (said.textContent = ""), 2500);
  };
  place.append(button, said);
}
