// Texts and whole tables come compressed: they are unpacked once the page is there, or when first asked for.
const unpack = async (id) => {
  const held = document.getElementById(id);
  if (!held) return {};
  const letters = atob(held.textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
};

const once = (make) => {
  let made;
  return () => (made ??= make());
};

const wholeTables = once(async () => Object.assign(data, await unpack("tables")));
const allTexts = once(async () => {
  data.examples = await unpack("examples");
  return data.examples;
});

addEventListener("load", () => setTimeout(() => wholeTables().then(allTexts), 0));
