
"use strict";
(() => {
  const MISSING = ["", "-", "–", "—", "n/a", "no record", "not run"];
  // a number at the start of a cell: 0.712 ± 0.003, 1%, +0.010, 1,234 MB, 0.835 (1 split)
  const NUMBER = /^[<>≤≥≈~]?\s*([+\-−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[+-]?\d+)?)(?=$|[\s%×±()])/i;
  const NUMBERS = 0, WORDS = 1, NOTHING = 2;

  function sortKey(cell) {
    const text = cell ? cell.textContent.trim() : "";
    if (MISSING.includes(text.toLowerCase())) return { kind: NOTHING };
    // "before → after" is sorted by the second number
    const found = NUMBER.exec(text.split("→").pop().trim());
    const value = found && found[1] ? Number(found[1].replaceAll(",", "").replace("−", "-")) : NaN;
    return Number.isNaN(value) ? { kind: WORDS, value: text } : { kind: NUMBERS, value };
  }

  // missing values stay at the end in both directions
  function compare(a, b, sign) {
    if (a.kind !== b.kind) return a.kind - b.kind;
    if (a.kind === NUMBERS) return sign * (a.value - b.value);
    return a.kind === WORDS ? sign * a.value.localeCompare(b.value, "en", { numeric: true }) : 0;
  }

  function sortBy(table, original, column, direction) {
    const sign = direction === "descending" ? -1 : 1;
    const rows = original.map((row) => ({ row, key: sortKey(row.cells[column]) }));
    if (direction) rows.sort((a, b) => compare(a.key, b.key, sign));
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }

  // ascending, descending, then the order of the report
  const NEXT = { ascending: "descending", descending: null };

  function makeSortable(table) {
    if (!table.tBodies.length) return;
    const original = [...table.tBodies[0].rows];
    const headers = [...table.tHead.rows[0].cells];
    headers.forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const before = header.getAttribute("aria-sort");
        const direction = before ? NEXT[before] : "ascending";
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        if (direction) header.setAttribute("aria-sort", direction);
        sortBy(table, original, column, direction);
      });
    });
  }

  function makeFilter(input, output, frames, rows) {
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const cells = [...row.cells].map((cell) => cell.textContent.toLowerCase());
        // a percentage must match exactly: 1% does not match 11%
        const fits = (word) => cells.some((cell) =>
          word.endsWith("%") ? cell.split(/\s+/).includes(word) : cell.includes(word));
        row.hidden = !words.every(fits);
        shown += !row.hidden;
      }
      for (const frame of frames) {
        frame.classList.toggle("empty", !frame.querySelector("tbody tr:not([hidden])"));
      }
      for (const details of document.querySelectorAll("main details")) {
        details.open = words.length > 0;
      }
      output.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    });
    input.closest(".filter").hidden = false;
  }

  const tables = [...document.querySelectorAll("main table")];
  tables.forEach(makeSortable);
  const rows = tables.flatMap((table) => [...table.tBodies].flatMap((body) => [...body.rows]));
  if (rows.length) {
    const frames = [...document.querySelectorAll("main .table")];
    const [input, output] = document.querySelectorAll(".filter input, .filter output");
    makeFilter(input, output, frames, rows);
  }
})();
