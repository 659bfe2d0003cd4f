// Shows the units of a cell in a drawer, after the reader has agreed once to see them.
const drawer = document.getElementById("drawer");
const shelf = document.getElementById("drawer-texts");
const notice = document.getElementById("notice");

function fill(key) {
  const sentences = data.sentences[key] || [];
  shelf.replaceChildren();
  if (!sentences.length) {
    shelf.append(element("p", `No ${data.unit} was kept for this cell.`));
    return;
  }
  const list = element("ol");
  for (const [text, place] of sentences) {
    const item = element("li", text);
    item.append(element("span", place, "from"));
    list.append(item);
  }
  shelf.append(element("h3", `Drawn at random (${sentences.length})`), list);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-key]");
  if (!button) return;
  document.getElementById("drawer-kicker").textContent = button.dataset.kicker;
  document.getElementById("drawer-title").textContent = button.dataset.title;
  fill(button.dataset.key);
  drawer.showModal();
  drawer.scrollTop = 0;
});
document.getElementById("notice-confirm").addEventListener("click", () => {
  notice.hidden = true;
  shelf.hidden = false;
  document.getElementById("drawer-close").focus();
});
document.getElementById("drawer-close").addEventListener("click", () => drawer.close());
drawer.addEventListener("click", (event) => {
  if (event.target === drawer && event.offsetX < 0) drawer.close();
});
for (const button of all("[data-key]")) button.setAttribute("aria-haspopup", "dialog");
