// What a share and its gaps are at other cuts. Every number is a row of the table of cuts; here they are only drawn.
const minus = (text) => text.replace("-", "−");
// Halves go to the even digit, as in the numbers the page came with.
const fixed = [0, 1, 2, 3].map((digits) => {
  const places = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false };
  return new Intl.NumberFormat("en", { ...places, roundingMode: "halfEven" });
});
const asShare = (share) => fixed[0 < share && share < 0.001 ? 2 : 1].format(100 * share);
const asPoints = (share) => {
  const value = 100 * share;
  const text = fixed[0 < Math.abs(value) && Math.abs(value) < 0.1 ? 2 : 1].format(Math.abs(value));
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
};
const asP = (p) => (p === null ? "not tested" : p < 0.001 ? "< 0.001" : fixed[p < 0.1 ? 3 : 2].format(p));
const asCut = (cut) => minus(String(Number(cut.toPrecision(3))));
const sideOf = (cut) => (cut < 0 ? "at or below" : "at or above");

const cutRows = once(async () => {
  await wholeTables();
  const names = ["cut", "value", "value_low", "value_high", "baseline_value", "estimate", "low", "high", "p", "p_adjusted"];
  const columns = names.map((name) => column("cuts", name));
  const parts = keys.map((name) => column("cuts", name));
  const rowsByKey = new Map();
  columns[0].forEach((cut, row) => {
    const key = JSON.stringify(parts.map((part) => part[row]));
    if (!rowsByKey.has(key)) rowsByKey.set(key, new Map());
    rowsByKey.get(key).set(cut, Object.fromEntries(names.map((name, place) => [name, columns[place][row]])));
  });
  return rowsByKey;
});

// As the standing of a gap is read off the comparisons.
function standingOf(row) {
  if (row.estimate === null || row.p === null) return "missing";
  if (row.p_adjusted !== null && row.p_adjusted <= 0.05) return "supported";
  return row.low !== null && row.low > -0.05 && row.high < 0.05 ? "small" : "unclear";
}

async function prepareCuts(box) {
  const panel = box.closest(".panel");
  const cuts = box.dataset.cuts.split(" ").map(Number);
  const rowsByKey = await cutRows();
  const rows = all("tbody tr", panel).map((row) => ({
    row,
    at: rowsByKey.get(JSON.stringify(keyOf("groups", row.dataset.g))) ?? new Map(),
    isBaseline: row.classList.contains("baseline"),
  }));
  const ends = rows.flatMap(({ at }) => [...at.values()].flatMap((row) => [row.value_high, row.value, row.baseline_value]));
  const supported = cuts.map((cut) => rows.filter(({ at }) => at.has(cut) && standingOf(at.get(cut)) === "supported").length);
  return { box, panel, cuts, rows, supported, top: roundUp(Math.max(0.01, ...ends.filter((end) => end !== null))) };
}

const roundUp = (value) => [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1].find((step) => value <= step + 1e-9) ?? 1;

function drawStrip({ box, cuts, supported }) {
  const strip = box.querySelector(".strip");
  const most = Math.max(1, ...supported);
  strip.replaceChildren(
    ...cuts.map((cut, place) => {
      const step = element("button", undefined, place === Number(box.dataset.own) ? "own" : "");
      step.type = "button";
      step.tabIndex = -1;
      step.title = `${supported[place]} larger than chance with the threshold at ${asCut(cut)}`;
      const pillar = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      const block = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const height = (100 * supported[place]) / most;
      for (const [name, value] of [["x", "15%"], ["width", "70%"], ["y", `${100 - height}%`], ["height", `${height}%`]])
        block.setAttribute(name, value);
      pillar.append(block);
      step.append(element("b", String(supported[place])), pillar, element("span", asCut(cut)));
      step.addEventListener("click", () => {
        box.querySelector("input").value = place;
        box.querySelector("input").dispatchEvent(new Event("input", { bubbles: true }));
      });
      return step;
    }),
  );
}

const set = (node, attributes) => Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));

function drawTicks({ panel, top }) {
  const at = (value) => `${2 + (96 * value) / top}%`;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => part * top);
  all(".chart thead .means text", panel).forEach((label) => label.remove());
  const grid = panel.querySelector(".chart thead .means defs g");
  const space = "http://www.w3.org/2000/svg";
  grid.replaceChildren();
  for (const tick of ticks) {
    const label = document.createElementNS(space, "text");
    set(label, { x: at(tick), y: 14 });
    label.textContent = `${Number((100 * tick).toPrecision(3))} %`;
    panel.querySelector(".chart thead .means").append(label);
    const line = document.createElementNS(space, "rect");
    set(line, { class: "grid", x: at(tick) });
    grid.append(line);
  }
}

function drawRow({ row, at, isBaseline }, cut, top) {
  const estimate = at.get(cut);
  if (!estimate) return;
  const place = (value) => 2 + 96 * Math.min(1, Math.max(0, value / top));
  const plot = row.querySelector(".means");
  const [dot, bar, ref] = ["circle", ".bar", ".ref"].map((part) => plot.querySelector(part));
  if (dot && estimate.value !== null) dot.setAttribute("cx", `${place(estimate.value)}%`);
  if (bar && estimate.value_low !== null)
    set(bar, { x: `${place(estimate.value_low)}%`, width: `${place(estimate.value_high) - place(estimate.value_low)}%` });
  const reference = isBaseline ? estimate.value : estimate.baseline_value;
  if (ref && reference !== null) ref.setAttribute("x", `${place(reference)}%`);
  const say = (selector, text) => {
    const cell = row.querySelector(selector);
    if (cell) cell.textContent = text;
  };
  if (estimate.value !== null) say(".est b", `${asShare(estimate.value)} %`);
  if (estimate.value_low !== null) say(".est small", `${asShare(estimate.value_low)} to ${asShare(estimate.value_high)} %`);
  if (isBaseline || estimate.estimate === null) return;
  const standing = standingOf(estimate);
  const direction = estimate.estimate > 0 ? "higher" : estimate.estimate < 0 ? "lower" : "";
  row.className = `${standing} ${direction}`;
  const arrow = standing === "supported" ? { higher: "▲ ", lower: "▼ " }[direction] ?? "" : "";
  say(".gap b", arrow + asPoints(estimate.estimate));
  say(".gap small", estimate.low === null ? "" : `${asPoints(estimate.low)} to ${asPoints(estimate.high)}`);
  say(".p", asP(estimate.p_adjusted));
}

function drawCut(known, place) {
  const { box, panel, cuts, rows, supported, top } = known;
  const cut = cuts[place];
  panel.dataset.cut = cut;
  drawTicks(known);
  rows.forEach((row) => drawRow(row, cut, top));
  all(".strip button", box).forEach((step, number) => step.classList.toggle("now", number === place));
  const own = Number(box.dataset.own);
  const gaps = rows.filter(({ at, isBaseline }) => !isBaseline && at.has(cut) && at.get(cut).estimate !== null).length;
  const same = place === own ? "the run’s own threshold" : `${supported[own]} at the run’s own threshold, ${asCut(cuts[own])}`;
  const sentence = `Values ${sideOf(cut)} ${asCut(cut)}: ${supported[place]} of ${gaps} gaps larger than chance (${same}).`;
  box.querySelector("output").textContent = sentence;
  box.querySelector("input").setAttribute("aria-valuetext", sentence);
  filters?.dispatchEvent(new Event("input"));
}

for (const box of all(".cut")) {
  const prepared = once(() => prepareCuts(box).then((known) => (drawStrip(known), known)));
  box.querySelector("input").addEventListener("input", async (event) => {
    event.stopPropagation();
    drawCut(await prepared(), Number(event.target.value));
  });
  new IntersectionObserver((seen, watcher) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    prepared();
  }).observe(box);
}
