"use strict";
// Each answer is sent as soon as it is given. Unacknowledged answers stay on this device and are sent again; a
// mark on every submission prevents a repeated one from counting twice. Without this file the page is a plain
// form.
(() => {
  const form = document.getElementById("work") ?? document.getElementById("resend");
  if (!form) return;
  document.documentElement.classList.add("js");

  const { who, study, page } = form.dataset;
  const key = `evenhand:${study}:${who}`;
  const asks = [...form.querySelectorAll(".ask")];
  const byName = new Map(asks.map((ask) => [ask.querySelector("input").name, ask]));
  const at = (id) => document.getElementById(id);
  const guide = at("guide");
  let current = null;
  let arrows = false;
  let sending = null;
  let wait = 0;

  // Persisted across pages: unacknowledged answers, and the undo history.
  const memory = new Map();
  const read = (name, otherwise) => {
    try { return JSON.parse(localStorage.getItem(`${key}:${name}`)) ?? otherwise; }
    catch { return memory.get(name) ?? otherwise; }
  };
  const write = (name, value) => {
    memory.set(name, value);
    try { localStorage.setItem(`${key}:${name}`, JSON.stringify(value)); } catch { /* kept in memory */ }
  };
  const mark = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  // Sending
  const say = (state, text) => { const status = at("status"); status.dataset.state = state; status.textContent = text; };
  const trouble = (text) => { const place = at("trouble"); place.textContent = text; place.hidden = !text; };

  async function post(batch) {
    const body = new URLSearchParams({ form: form.elements.form.value, mark: batch.mark, ...batch.answers });
    const reply = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" }, signal: AbortSignal.timeout(20000) });
    if (reply.ok) return;
    const refused = [403, 413, 422].includes(reply.status);
    const { error } = refused ? await reply.json().catch(() => ({})) : {};
    throw Object.assign(new Error(error || `This could not be saved (${reply.status}).`), { refused, status: reply.status });
  }

  const unsent = () => read("sent", null) !== null || Object.keys(read("unsent", {})).length > 0;

  function flush() {
    sending ??= send().finally(() => { sending = null; });
    // Otherwise an answer given between the last check and the end would wait for the next one.
    return sending.then((ok) => (ok && unsent() ? flush() : ok));
  }

  async function send() {
    for (;;) {
      let batch = read("sent", null);
      if (!batch) {
        const answers = read("unsent", {});
        if (!Object.keys(answers).length) { wait = 0; return true; }
        // From now on this batch keeps its mark: if the reply is lost, it is sent again unchanged.
        batch = { mark: mark(), answers };
        write("sent", batch);
        write("unsent", {});
      }
      say("sending", "Saving …");
      try {
        await post(batch);
      } catch (error) {
        failed(error, batch);
        return false;
      }
      settled(batch);
      trouble("");
      if (!Object.keys(read("unsent", {})).length) say("saved", "Saved");
    }
  }

  // Another tab may have started its own batch since then: that batch is not acknowledged.
  const settled = (batch) => { if (read("sent", null)?.mark === batch.mark) write("sent", null); };

  function failed(error, batch) {
    say("waiting", "Not saved yet");
    if (error.refused) {
      // 403: the answers belong to this person, whose own link will accept them. Others are never accepted.
      if (error.status !== 403) settled(batch);
      trouble(error.message);
      return;
    }
    trouble("No connection. Your answers are kept on this device and will be sent when the connection is back." + (asks.length ? " You can continue with this page." : ""));
    wait = Math.min((wait || 500) * 2, 15000);
    setTimeout(flush, wait);
  }

  addEventListener("online", flush);
  // The first and the last page have no questions: they only send pending answers.
  if (form.id === "resend") {
    if (unsent()) flush();
    return;
  }

  // Answers
  const name = (ask) => ask.querySelector("input").name;
  const given = (ask) => ask.querySelector("input:checked")?.value ?? "";
  const done = (ask) => given(ask) !== "";

  function show(ask, value) {
    for (const input of ask.querySelectorAll("input")) input.checked = input.value === value;
    ask.dataset.value = value;
    if (value) { ask.classList.remove("lacks"); ask.querySelector(".lack")?.remove(); }
    count();
  }

  function store(ask, value) {
    write("unsent", { ...read("unsent", {}), [name(ask)]: value });
    show(ask, value);
    flush();
  }

  function answer(ask, value) {
    const before = ask.dataset.value ?? "";
    if (before === value) return;
    write("undo", [...read("undo", []), { page, name: name(ask), before }].slice(-200));
    store(ask, value);
  }

  function undo() {
    const steps = read("undo", []);
    const last = steps.pop();
    if (!last) return;
    if (last.page !== page) {
      location.assign(`/work?page=${last.page}#undo`);
      return;
    }
    write("undo", steps);
    if (!byName.has(last.name)) return;
    const ask = byName.get(last.name);
    store(ask, last.before);
    go(ask);
  }

  // Current question
  function go(ask, { focus = true } = {}) {
    if (!ask) return;
    const card = ask.closest(".card");
    const other = current?.closest(".card") !== card;
    current?.classList.remove("at");
    current?.closest(".card").classList.remove("now");
    current = ask;
    ask.classList.add("at");
    card.classList.add("now");
    if (focus) {
      (ask.querySelector("input:checked") ?? ask.querySelector("input")).focus({ preventScroll: true });
      const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
      const block = card.offsetHeight > innerHeight * 0.6 ? "start" : "center";
      if (other) card.scrollIntoView({ block, behavior });
      else ask.scrollIntoView({ block: "nearest", behavior });
    }
  }

  const after = (ask) => {
    const place = asks.indexOf(ask);
    return [...asks.slice(place + 1), ...asks.slice(0, place)].find((one) => !done(one));
  };

  function onward() {
    const open = current && after(current);
    if (open) go(open);
    else if (current && !done(current)) go(current);
    else at("next").focus({ preventScroll: true });
  }

  function count() {
    const cards = [...form.querySelectorAll(".card")];
    const finished = cards.filter((card) => [...card.querySelectorAll(".ask")].every(done)).length;
    const before = Number(form.dataset.before);
    at("here").textContent = cards.length > 1 ? `${finished} of ${cards.length} here` : "";
    at("answered").textContent = String(before + finished);
    at("far").value = before + finished;
    at("undo").disabled = read("undo", []).length === 0;
  }

  async function submit(event) {
    event.preventDefault();
    const open = asks.find((ask) => !done(ask));
    if (open) {
      trouble("Some questions on this page are not answered yet.");
      go(open);
      return;
    }
    if (await flush()) location.assign(`/work?page=${Number(page) + 1}`);
  }

  // Keys
  const keysOn = () => read("keys", true);
  function digit(number) {
    const choices = [...current.querySelectorAll("input")];
    const scale = current.classList.contains("scale");
    const chosen = scale ? choices.find((input) => input.value === String(number)) : choices[number - 1];
    if (!chosen) return;
    answer(current, chosen.value);
    onward();
  }
  function step(by) { go(asks[Math.min(asks.length - 1, Math.max(0, asks.indexOf(current) + by))]); }
  function enter(event) {
    const own = event.target.closest("a, button, summary, [type=checkbox]");
    if (own) return;
    event.preventDefault();
    if (asks.every(done)) form.requestSubmit();
    else if (done(current)) onward();
  }
  const keys = {
    u: undo,
    Backspace: undo,
    j: () => step(1),
    k: () => step(-1),
    g: () => { guide.open = !guide.open; write("guide", guide.open); },
  };
  function pressed(event) {
    arrows = event.key.startsWith("Arrow");
    if ((event.ctrlKey || event.metaKey) && event.key === "z") { event.preventDefault(); undo(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") { enter(event); return; }
    if (!keysOn()) return;
    if (/^[0-9]$/.test(event.key)) digit(Number(event.key));
    else if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  }

  // Start
  for (const ask of asks) ask.dataset.value = given(ask);
  const known = [...form.querySelectorAll(".card")].filter((card) => [...card.querySelectorAll(".ask")].every(done)).length;
  form.dataset.before = String(Number(at("answered").textContent) - known);
  // Answers that the server had not received when it rendered this page.
  for (const [field, value] of Object.entries({ ...read("sent", null)?.answers, ...read("unsent", {}) })) {
    if (byName.has(field)) show(byName.get(field), value);
  }
  form.addEventListener("change", (event) => {
    const ask = event.target.closest(".ask");
    if (!ask) return;
    answer(ask, event.target.value);
    go(ask, { focus: false });
    // Moving through choices with arrow keys is not a final choice.
    if (!arrows) onward();
  });
  form.addEventListener("focusin", (event) => { const ask = event.target.closest(".ask"); if (ask && ask !== current) go(ask, { focus: false }); });
  form.addEventListener("pointerdown", () => { arrows = false; });
  form.addEventListener("submit", submit);
  document.addEventListener("keydown", pressed);
  at("undo").addEventListener("click", undo);
  at("use-keys").checked = keysOn();
  at("use-keys").addEventListener("change", (event) => write("keys", event.target.checked));
  // Open if there is room next to the texts.
  const beside = matchMedia("(min-width: 62rem)").matches && !guide.closest(".side-by-side");
  guide.open = read("guide", beside);
  guide.querySelector("summary").addEventListener("click", () => write("guide", !guide.open));

  count();
  flush();
  if (location.hash === "#undo") {
    history.replaceState(null, "", location.pathname + location.search);
    undo();
  } else {
    go(asks.find((ask) => !done(ask)) ?? asks[0], { focus: false });
    if (matchMedia("(hover: hover)").matches) current?.querySelector("input").focus({ preventScroll: true });
  }
})();
