// Filter and sort: what is shown of the charts and of the comparison table.
const filters = document.getElementById("filters");

if (filters) {
  const axes = column("comparisons", "axis");
  const metrics = column("comparisons", "metric");
  const comparisons = all(".comparisons tbody tr").map((row) => ({
    row,
    axis: axes[row.dataset.c],
    metric: metrics[row.dataset.c],
    name: nameOf(row),
    exploratory: row.hasAttribute("data-exploratory"),
  }));
  for (const figure of figures)
    for (const entry of figure.panels)
      entry.rows = entry.rows.map((row) => ({ row, name: nameOf(row) }));

  const wanted = () => ({
    axis: filters.elements.axis.value,
    metric: filters.elements.metric.value,
    standing: filters.elements.standing.value,
    find: filters.elements.find.value.trim().toLowerCase(),
    exploratory: filters.elements.exploratory ? filters.elements.exploratory.checked : true,
  });

  const apply = () => {
    const want = wanted();
    const charts = figures.filter((figure) => applyToFigure(figure, want)).length;
    const shown = comparisons.filter((entry) => applyToComparison(entry, want)).length;
    toggle("no-charts", charts > 0 || figures.length === 0);
    toggle("no-comparisons", shown > 0 || comparisons.length === 0);
    const total = comparisons.length;
    document.getElementById("shown").textContent =
      total ? `${shown.toLocaleString("en")} of ${total.toLocaleString("en")} comparisons` : "";
  };

  filters.addEventListener("input", apply);
  filters.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

function nameOf(row) {
  return row.querySelector(".name").textContent.toLowerCase();
}

function toggle(id, hidden) {
  const node = document.getElementById(id);
  if (node) node.hidden = hidden;
}

function matches(entry, want) {
  return (!want.standing || entry.row.classList.contains(want.standing)) && entry.name.includes(want.find);
}

function applyToFigure(figure, want) {
  const { axis, metric } = figure.figure.dataset;
  const asked = (!want.axis || axis === want.axis) && (!want.metric || metric === want.metric);
  for (const entry of figure.panels) {
    entry.matches = 0;
    for (const mark of entry.rows) {
      const matched = matches(mark, want);
      entry.matches += matched;
      // The baseline is shown with every match: a gap is read against it.
      mark.row.hidden = !matched && !mark.row.classList.contains("baseline");
    }
    entry.tab.hidden = entry.matches === 0 || (entry.exploratory && !want.exploratory && hasPrimary(figure));
  }
  const open = figure.panels.filter((entry) => !entry.tab.hidden);
  figure.figure.hidden = !asked || open.length === 0;
  if (open.length && !open.includes(figure.current)) select(figure, open[0]);
  return !figure.figure.hidden;
}

function hasPrimary(figure) {
  return figure.panels.some((entry) => !entry.exploratory);
}

function applyToComparison(entry, want) {
  const shown =
    (!want.axis || entry.axis === want.axis) &&
    (!want.metric || entry.metric === want.metric) &&
    (want.exploratory || !entry.exploratory) &&
    matches(entry, want);
  entry.row.hidden = !shown;
  return shown;
}

// Sort by what a cell shows; cells without a number go last either way.
const shownNumber = (text) => {
  const number = parseFloat(text.replaceAll("−", "-").replace(/[^0-9.eE+-]/g, ""));
  return Number.isNaN(number) ? null : number;
};

function sortKey(row, place, kind) {
  const cell = row.cells[place];
  const text = (cell.querySelector("b") || cell.firstChild || cell).textContent.trim();
  return kind === "number" ? shownNumber(text) : text.toLowerCase();
}

function sortBy(header) {
  const table = header.closest("table");
  const descending =
    header.getAttribute("aria-sort") === "ascending" || (!header.ariaSort && header.dataset.sort === "number");
  const place = header.cellIndex;
  const keyed = Array.from(table.tBodies[0].rows, (row) => ({ row, key: sortKey(row, place, header.dataset.sort) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    const order = typeof a.key === "number" ? a.key - b.key : a.key.localeCompare(b.key);
    return descending ? -order : order;
  });
  all("th[aria-sort]", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  table.tBodies[0].append(...keyed.map((entry) => entry.row));
}

// The words stay in the header, next to the button: a printed page repeats words but not buttons.
for (const header of all("th[data-sort]")) {
  const button = element("button", undefined, "sort");
  button.type = "button";
  button.setAttribute("aria-label", `Sort by ${header.textContent.trim()}`);
  header.append(button);
  button.addEventListener("click", () => sortBy(header));
}
