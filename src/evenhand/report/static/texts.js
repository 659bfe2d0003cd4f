// The texts behind a dot, in a drawer, after the reader has agreed once to see them.
const drawer = document.getElementById("drawer");
const shelf = document.getElementById("drawer-texts");
const notice = document.getElementById("notice");
const why = [
  ["lowest", "Lowest values"],
  ["highest", "Highest values"],
  ["drawn", "Drawn at random"],
];
const keys = ["suite", "model", "axis", "group", "metric", "output"];

const keyOf = (table, index) => keys.map((key) => column(table, key)[index]);

// A share has no texts of its own: those of the metric's values stand behind it.
function examplesOf(key) {
  const same = (data.examples.bars || []).filter((bar) => key.slice(0, 5).every((part, place) => bar[place] === part));
  const exact = same.filter((bar) => bar[5] === key[5]);
  const chosen = [];
  // A text that stands behind two values of the metric is shown for the first.
  const seen = new Set();
  for (const bar of exact.length ? exact : same) {
    const fresh = bar[6].filter(([place]) => !seen.has(place));
    fresh.forEach(([place]) => seen.add(place));
    chosen.push(...fresh);
  }
  return chosen;
}

function textItem([place, , value, label], counted) {
  const [prompt, text] = data.examples.texts[place];
  const item = element("li");
  const rest = prompt && text.startsWith(prompt) ? text.slice(prompt.length) : text;
  if (prompt) item.append(element("span", prompt, "prompt"));
  const gap = prompt && rest && !/\s$/.test(prompt) && !/^\s/.test(rest) && rest === text ? " " : "";
  item.append(element("span", gap + rest));
  const score = element("span", undefined, "score");
  const parts = [];
  if (value !== null) parts.push(`value ${Number(value.toPrecision(4))}`.replace("-", "−"));
  if (label) parts.push(label.replaceAll("_", " "));
  score.textContent = parts.join(" · ");
  if (counted && label === counted) score.classList.add("counted");
  item.append(score);
  return item;
}

function fill(key, counted) {
  const examples = examplesOf(key);
  shelf.replaceChildren();
  if (!examples.length) shelf.append(element("p", "This report carries no texts for this group and measure."));
  else if (counted) shelf.append(element("p", `Texts labelled “${counted.replaceAll("_", " ")}” are counted in this share; their label is bold.`, "caption"));
  for (const [reason, title] of why) {
    const chosen = examples.filter((example) => example[1] === reason);
    if (!chosen.length) continue;
    const list = element("ol");
    list.append(...chosen.map((example) => textItem(example, counted)));
    shelf.append(element("h3", `${title} (${chosen.length})`), list);
  }
}

function openDrawer(key, name, measure, counted) {
  document.getElementById("drawer-title").textContent = name;
  document.getElementById("drawer-kicker").textContent = `${key[4].replaceAll("_", " ")} · ${measure}`;
  fill(key, counted);
  drawer.showModal();
  drawer.scrollTop = 0;
}

document.getElementById("notice-confirm").addEventListener("click", () => {
  notice.hidden = true;
  shelf.hidden = false;
  document.getElementById("drawer-close").focus();
});
document.getElementById("drawer-close").addEventListener("click", () => drawer.close());
drawer.addEventListener("click", (event) => {
  if (event.target === drawer && event.offsetX < 0) drawer.close();
});

for (const table of all(".chart"))
  table.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    const panel = table.closest(".panel");
    const name = row.querySelector(".name").textContent;
    openDrawer(keyOf("groups", row.dataset.g), name, panel.dataset.title, panel.dataset.label);
  });
for (const table of all(".comparisons"))
  table.tBodies[0].addEventListener("click", (event) => {
    const button = event.target.closest(".name");
    if (!button) return;
    const key = keyOf("comparisons", button.closest("tr").dataset.c);
    openDrawer(key, button.textContent, key[5].replaceAll("_", " "), "");
  });
for (const button of all(".name")) button.setAttribute("aria-haspopup", "dialog");
