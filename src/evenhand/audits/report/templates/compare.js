// What is shown of the leaderboard and of the changes.
const narrow = document.getElementById("narrow");
const places = all(".boards tbody, .changes tbody tr").map((place) => ({
  place,
  exploratory: place.hasAttribute("data-exploratory"),
  name: !place.matches("tr") ? undefined : place.querySelector("th[scope=row]")?.firstChild.textContent.toLowerCase(),
}));

const isShown = ({ place, exploratory, name }, want) =>
  ["axis", "metric"].every((key) => !want[key] || place.dataset[key] === want[key]) &&
  ["run", "so"].every((key) => !want[key] || !(key in place.dataset) || place.dataset[key] === want[key]) &&
  (want.exploratory || !exploratory) &&
  (name === undefined || name.includes(want.find));

const apply = () => {
  const fields = narrow.elements;
  const want = {
    axis: fields.axis.value,
    metric: fields.metric.value,
    run: fields.run?.value,
    so: fields.so.value,
    find: fields.find.value.trim().toLowerCase(),
    exploratory: fields.exploratory.checked,
  };
  for (const entry of places) entry.place.hidden = !isShown(entry, want);
  for (const empty of all("[data-empty]")) {
    const held = all(".boards tbody, .changes tbody tr", empty.closest("section"));
    empty.hidden = !held.length || held.some((place) => !place.hidden);
  }
  const changes = places.filter(({ place }) => place.matches("#gaps tr"));
  const shown = changes.filter(({ place }) => !place.hidden).length;
  document.getElementById("shown").textContent = `${shown.toLocaleString("en")} of ${changes.length.toLocaleString("en")} gaps`;
};

// Runs that have nothing but exploratory measures show them.
if (places.every(({ exploratory }) => exploratory)) narrow.elements.exploratory.checked = true;
narrow.addEventListener("input", apply);
narrow.addEventListener("submit", (event) => event.preventDefault());
apply();
