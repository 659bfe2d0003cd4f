// Tables as CSV files, made here from what the page carries.
// A spreadsheet runs a cell that begins like a formula: words that do so get an apostrophe in front. Where the
// comma is a decimal mark, a semicolon, a tab or a line end in a text begins a cell too.
const formula = /(^|[;\t\r\n])(?=(?:[^\S\t\r\n]|['"])*[=+\-@＝＋－＠])|^(?=[ ']*[\t\r\n])/g;

const cellOf = (value) => {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  return `"${value.replace(formula, "$1'").replaceAll('"', '""')}"`;
};

const csvOf = (names, columns) => {
  const lines = [names.join(",")];
  for (let row = 0; row < (columns[0] || []).length; row += 1)
    lines.push(columns.map((values) => cellOf(values[row])).join(","));
  return `${lines.join("\r\n")}\r\n`;
};

async function textColumns() {
  await allTexts();
  const names = [...keys, "why", "prompt", "text", "value", "label"];
  const rows = data.examples.bars.flatMap((bar) =>
    bar[6].map(([place, reason, value, label]) => [...bar.slice(0, 6), reason, ...data.examples.texts[place].slice(0, 2), value, label]),
  );
  return [names, names.map((_, place) => rows.map((row) => row[place]))];
}

async function tableColumns(table) {
  await wholeTables();
  const names = Object.keys(data[table]);
  return [names, names.map((name) => column(table, name))];
}

for (const button of all("[data-download]"))
  button.addEventListener("click", async () => {
    const table = button.dataset.download;
    const csv = csvOf(...(await (table === "texts" ? textColumns() : tableColumns(table))));
    const link = element("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", csv], { type: "text/csv" }));
    link.download = `${table}.csv`;
    link.click();
    // A busy browser may begin to read it only seconds later.
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
