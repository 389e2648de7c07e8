"use strict";
(() => {
  // Sorting. A header becomes a button, so that a keyboard reaches it; a cell sorts by data-v or by its text.
  const key = (row, column) => {
    const cell = row.cells[column];
    return (cell.dataset.v ?? cell.textContent).trim();
  };
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  const sort = (table, header) => {
    const column = header.cellIndex;
    const before = header.getAttribute("aria-sort");
    const first = header.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = before === first ? other : first;
    for (const each of table.querySelectorAll("th[data-sort]")) each.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [key(row, column), row]);
    // What has no value comes last in either order.
    keyed.sort(([a], [b]) => (a === "") - (b === "") || (a === "" ? 0 : sign * compare(a, b)));
    body.append(...keyed.map(([, row]) => row));
  };
  for (const header of document.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(header.closest("table"), header));
  }

  // Filtering: rows that hold every word.
  for (const table of document.querySelectorAll("table[data-filter]")) {
    const label = document.createElement("label");
    label.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    const found = document.createElement("span");
    found.className = "muted";
    found.setAttribute("role", "status");
    label.append(table.dataset.filter, input, found);
    const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const [row, text] of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      found.textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
    table.closest(".scroll").before(label);
  }

  // One table at a time, chosen by buttons.
  for (const tabbed of document.querySelectorAll(".tabbed")) {
    const sections = [...tabbed.children];
    const bar = document.createElement("div");
    bar.className = "tabs";
    const choose = (chosen) => {
      sections.forEach((section, at) => { section.hidden = at !== chosen; });
      [...bar.children].forEach((button, at) => button.setAttribute("aria-pressed", at === chosen));
    };
    sections.forEach((section, at) => {
      const button = document.createElement("button");
      button.type = "button";
      const heading = section.querySelector("h3");
      button.textContent = heading.textContent;
      heading.className = "hidden";
      button.addEventListener("click", () => choose(at));
      bar.append(button);
    });
    tabbed.prepend(bar);
    choose(0);
  }

  // Copying. The clipboard's own interface exists on HTTPS and on files; elsewhere the selection is copied.
  const copy = async (source) => {
    if (navigator.clipboard) {
      try {
        await navigator.clipboard.writeText(source.textContent);
        return true;
      } catch {
        // Not permitted: the selection is tried.
      }
    }
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  };
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    const status = button.parentElement.querySelector("[role=status]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      status.textContent = (await copy(source)) ? "Copied." : "Select the text and copy it.";
    });
  }

  // A link to a study opens it; a print opens all, and closes again what was closed.
  const open = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
  // The hash stays the same when the same link is followed again.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#study-']");
    if (link && link.hash === location.hash) open();
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of closed) details.open = false;
  });
})();
