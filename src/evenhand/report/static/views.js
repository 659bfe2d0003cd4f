// What leads from one part of the page to another: estimates or their spread, a count to its rows, a name to its charts.
for (const bar of all(".views")) {
  const panel = bar.closest(".panel");
  const buttons = all("button", bar);
  for (const button of buttons)
    button.addEventListener("click", () => {
      panel.classList.toggle("spread", button.dataset.view === "spread");
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    });
}

function narrow(changes, target) {
  for (const [name, value] of Object.entries(changes)) filters.elements[name].value = value;
  filters.dispatchEvent(new Event("input"));
  const section = document.getElementById(target);
  section.scrollIntoView();
  section.tabIndex = -1;
  section.focus({ preventScroll: true });
}

const everything = { axis: "", metric: "", standing: "", find: "" };
for (const button of all("[data-standing]"))
  button.addEventListener("click", () => narrow({ ...everything, standing: button.dataset.standing }, "comparisons"));
for (const button of all("[data-find]"))
  button.addEventListener("click", () => narrow({ ...everything, find: button.textContent.trim() }, "charts"));
