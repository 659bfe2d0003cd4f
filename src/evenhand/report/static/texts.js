// The texts of a dot, in a drawer, after the reader has agreed once to see them.
const drawer = document.getElementById("drawer");
const shelf = document.getElementById("drawer-texts");
const notice = document.getElementById("notice");
const why = [
  ["lowest", "Lowest values"],
  ["highest", "Highest values"],
  ["drawn", "Drawn at random"],
];
const words = (text) => text.replaceAll("_", " ");
const shownValue = (value) => minus(String(Number(value.toPrecision(3))));
const signed = (value) => `${value > 0 ? "+" : ""}${shownValue(value)}`;

// A share has no texts of its own: it shows those of the value that is cut.
function examplesOf(key, source) {
  const same = data.examples.bars.filter((bar) => key.slice(0, 5).every((part, place) => bar[place] === part));
  for (const output of [key[5], source]) {
    const exact = same.find((bar) => bar[5] === output);
    if (exact) return { output, examples: exact[6] };
  }
  return same.length ? { output: same[0][5], examples: same[0][6] } : { output: "", examples: [] };
}

// Whether a share counts a text: by its value where labels are cut from values, else by its label.
function counts(measure, cut, value, label) {
  if (measure.kind !== "share") return false;
  let [from, to] = measure.beyond;
  if (from === null && to === null) return !measure.cut && label === measure.label;
  if (value === null) return false;
  if (cut !== undefined) [from, to] = cut < 0 ? [null, cut] : [cut, null];
  if (from !== null && to !== null) return value > from && value < to;
  return from === null ? (measure.cuts > 1 || cut !== undefined ? value <= to : value < to) : value >= from;
}

function countedWords(measure, cut) {
  if (measure.kind !== "share") return "";
  const [from, to] = measure.beyond;
  if (from === null && to === null)
    return measure.cut ? "" : `Texts labelled “${words(measure.label)}” are counted in this share.`;
  if (cut !== undefined) return `Texts with a value ${sideOf(cut)} ${asCut(cut)} are counted in this share.`;
  if (from !== null && to !== null) return `Texts with a value between ${asCut(from)} and ${asCut(to)} are counted in this share.`;
  return `Texts with a value ${from === null ? "at or below" : "at or above"} ${asCut(from ?? to)} are counted in this share.`;
}

function markedWord(text, weight) {
  const size = Math.abs(weight);
  const made = element("mark", undefined, weight > 0 ? "up" : "down");
  made.append(text, element("sup", signed(weight)));
  made.dataset.size = size >= 1 ? 3 : size >= 0.4 ? 2 : 1;
  return made;
}

// What the metric read, with its words marked and the masks of group mentions shown as such.
function explained(read, spans, entries, place) {
  const line = element("p", undefined, "read");
  let done = 0;
  for (let at = 1; at < spans.length; at += 2) {
    const [start, entry] = [spans[at], spans[at + 1]];
    const length = entry < 0 ? -1 - entry : entries[entry][0];
    const weight = entry < 0 ? 0 : entries[entry][1 + place];
    if (start < done || (entry >= 0 && !weight)) continue;
    line.append(read.slice(done, start));
    const piece = read.slice(start, start + length);
    line.append(entry < 0 ? element("span", piece, "mask") : markedWord(piece, weight));
    done = start + length;
  }
  line.append(read.slice(done));
  return line;
}

function written(prompt, text) {
  const line = element("p", undefined, "read");
  const rest = prompt && text.startsWith(prompt) ? text.slice(prompt.length) : text;
  if (prompt) line.append(element("span", prompt, "prompt"));
  const gap = prompt && rest && !/\s$/.test(prompt) && !/^\s/.test(rest) && rest === text ? " " : "";
  line.append(element("span", gap + rest));
  return line;
}

function textItem([place, , value, label], metric, output, isCounted) {
  const [prompt, text, ...reads] = data.examples.texts[place];
  const known = data.examples.words[metric];
  const spans = known?.texts[place];
  const item = element("li");
  const original = written(prompt, text);
  if (spans && spans.length > 1) {
    const read = reads[spans[0]];
    item.append(explained(read, spans, known.entries, known.outputs.indexOf(output)));
    if (original.textContent.trim() !== read.trim()) {
      const more = element("details");
      more.append(element("summary", "As it was written"), original);
      item.append(more);
    }
  } else item.append(original);
  const parts = [];
  if (value !== null) parts.push(`${words(output)} ${shownValue(value)}`);
  if (label) parts.push(words(label));
  if (spans && spans.length === 1) parts.push("no scored word");
  const score = element("p", parts.join(" · "), "score");
  if (isCounted) score.append(" ", element("span", "counted", "tag counted"));
  item.append(score);
  return item;
}

// The same words with the same value are listed once, with their number.
function tallied(examples) {
  const seen = new Map();
  for (const one of examples) {
    const words = JSON.stringify([...data.examples.texts[one[0]].slice(0, 2), one[2]]);
    if (seen.has(words)) seen.get(words)[1] += 1;
    else seen.set(words, [one, 1]);
  }
  return seen.values();
}

function fill(key, cut) {
  const measure = data.measures[key[4]]?.[key[5]] ?? { kind: "mean", beyond: [null, null], texts: key[5] };
  const { output, examples } = examplesOf(key, measure.texts);
  shelf.replaceChildren();
  if (!examples.length) {
    shelf.append(element("p", "This report carries no texts for this group and measure."));
    return;
  }
  const notes = [countedWords(measure, cut)];
  if (data.examples.words[key[4]]) notes.push(`Marked words contribute to the score. ${data.explained[key[4]] ?? ""}`);
  notes.filter(Boolean).forEach((note) => shelf.append(element("p", note, "caption")));
  for (const [reason, title] of why) {
    const chosen = examples.filter((example) => example[1] === reason);
    if (!chosen.length) continue;
    const list = element("ol");
    for (const [one, times] of tallied(chosen)) {
      const item = textItem(one, key[4], output, counts(measure, cut, one[2], one[3]));
      if (times > 1) item.querySelector(".score").append(" ", element("span", `${times} times`, "tag"));
      list.append(item);
    }
    shelf.append(element("h3", `${title} (${chosen.length})`), list);
  }
}

async function openDrawer(key, name, cut) {
  const title = data.measures[key[4]]?.[key[5]]?.title ?? words(key[5]);
  document.getElementById("drawer-title").textContent = name;
  document.getElementById("drawer-kicker").textContent = `${words(key[4])} · ${title}`;
  drawer.showModal();
  if (!data.examples) {
    shelf.replaceChildren(element("p", "Unpacking the texts …"));
    await allTexts();
  }
  fill(key, cut);
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
    const { cut } = table.closest(".panel").dataset;
    const name = row.querySelector(".name").textContent;
    openDrawer(keyOf("groups", row.dataset.g), name, cut === undefined ? undefined : Number(cut));
  });
for (const table of all(".comparisons"))
  table.tBodies[0].addEventListener("click", (event) => {
    const button = event.target.closest(".name");
    if (button) openDrawer(keyOf("comparisons", button.closest("tr").dataset.c), button.textContent);
  });
for (const button of all("[data-texts]"))
  button.addEventListener("click", () => openDrawer(keyOf("comparisons", button.dataset.texts), button.dataset.name));
for (const button of all(".name, [data-texts]")) button.setAttribute("aria-haspopup", "dialog");
