// Filters and the theme. Nothing here needs the chart library.
(() => {
  "use strict";
  const form = document.getElementById("filters");
  const words = document.getElementById("words");
  const shown = document.getElementById("shown");
  const selects = [...form.querySelectorAll("select[data-filter]")];
  let tables = null;

  // Texts are read once, at the first use: a page may hold thousands of rows.
  const readTables = () =>
    [...document.querySelectorAll("table[data-filters]")].map((table) => ({
      name: document.querySelector(`nav a[href="#${table.closest("section").id}"]`).textContent,
      columns: JSON.parse(table.dataset.filters),
      rows: [...table.tBodies[0].rows].map((row) => {
        const cells = [...row.cells].map((cell) => cell.textContent.trim());
        return { row, cells, text: cells.join(" ").toLowerCase() };
      }),
    }));

  // `*` stands for every arm, so it stays whichever arm is chosen.
  const matches = (cells, columns) =>
    selects.every((select) => {
      const column = columns[select.dataset.filter];
      if (!select.value || column === undefined) return true;
      return cells[column] === select.value || cells[column] === "*";
    });

  const apply = () => {
    tables ??= readTables();
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isOpen = !wanted.length && selects.every((select) => !select.value);
    const counts = tables.map(({ name, columns, rows }) => {
      let visible = 0;
      for (const { row, cells, text } of rows) {
        const isShown = wanted.every((word) => text.includes(word)) && matches(cells, columns);
        row.hidden = !isShown;
        visible += isShown;
      }
      return `${name}: ${visible} of ${rows.length}`;
    });
    shown.value = isOpen ? "" : counts.join(", ");
  };

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));

  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
  const announce = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    button.textContent = isDark() ? "light" : "dark";
    button.setAttribute("aria-label", `change to ${button.textContent} colours`);
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    announce();
  });
  prefersDark.addEventListener("change", announce);
  announce();
})();
