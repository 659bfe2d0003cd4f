// The tables of the run, as the page carries them, and the few things every part uses.
const root = document.documentElement;
root.classList.add("js");
const data = JSON.parse(document.getElementById("data").textContent);

// Words are written once and referred to by number; a column of one word only says how often.
const unfold = (stored) => {
  if (Array.isArray(stored)) return stored;
  if (stored.words.length < 2) return Array(stored.size).fill(stored.words[0]);
  return stored.at.map((index) => stored.words[index]);
};
const column = (table, name) => (data[table][name] = unfold(data[table][name]));

// What a row of groups or comparisons is about.
const keys = ["suite", "model", "axis", "group", "metric", "output"];
const keyOf = (table, index) => keys.map((key) => column(table, key)[index]);

const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};

const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

// Light or dark: the system's choice until the reader makes one.
const theme = document.getElementById("theme");
const isDark = () =>
  (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
};
theme.removeAttribute("aria-pressed");
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();
