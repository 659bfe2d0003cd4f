// The outputs of a figure stand below each other; with scripts on they become tabs.
const narrowScreen = matchMedia("(max-width: 46rem)");
const figures = all(".figure").map((figure) => {
  const panels = all(".panel", figure).map((panel) => ({
    panel,
    exploratory: panel.hasAttribute("data-exploratory"),
    rows: all("tbody tr", panel),
    matches: 0,
  }));
  const bar = element("div", undefined, "tabs");
  bar.setAttribute("role", "tablist");
  bar.setAttribute("aria-label", figure.querySelector("h3").textContent.trim());
  const made = { figure, panels, bar, current: panels[0] };
  panels.forEach((entry) => bar.append(tabFor(entry, made)));
  figure.querySelector("h3").after(bar);
  bar.addEventListener("keydown", (event) => moveTab(event, made));
  // A figure opens on its finding, if it has one.
  select(made, panels.find((entry) => Number(entry.panel.dataset.supported)) ?? panels[0]);
  return made;
});

function tabFor(entry, figure) {
  const tab = element("button", entry.panel.dataset.title);
  const supported = Number(entry.panel.dataset.supported);
  tab.type = "button";
  tab.id = `${entry.panel.id}-tab`;
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", entry.panel.id);
  if (supported) {
    const count = element("b", String(supported));
    count.title = `${supported} larger than chance`;
    tab.append(count);
  }
  entry.panel.setAttribute("role", "tabpanel");
  entry.panel.setAttribute("aria-labelledby", tab.id);
  tab.addEventListener("click", () => select(figure, entry));
  entry.tab = tab;
  return tab;
}

// A figure that is not yet laid out takes about the room it will need, so that links land where they should.
function reserve({ figure, current }) {
  const rows = Math.min(current.rows.length, 24);
  figure.style.containIntrinsicSize = `auto ${200 + rows * (narrowScreen.matches ? 84 : 38)}px`;
}

function select(figure, chosen) {
  figure.current = chosen;
  reserve(figure);
  for (const entry of figure.panels) {
    const on = entry === chosen;
    entry.panel.hidden = !on;
    entry.tab.setAttribute("aria-selected", String(on));
    entry.tab.tabIndex = on ? 0 : -1;
  }
}

function moveTab(event, figure) {
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  if (!(event.key in steps)) return;
  const shown = figure.panels.filter((entry) => !entry.tab.hidden);
  const next = shown[(shown.indexOf(figure.current) + steps[event.key] + shown.length) % shown.length];
  select(figure, next);
  next.tab.focus();
  event.preventDefault();
}
