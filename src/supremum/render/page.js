"use strict";
// One explanation is shown at a time: that of the cell pointed at, else of the one in focus. Escape hides it.
let shown = null;

function show(cell) {
  shown?.classList.remove("shown");
  shown = cell?.querySelector(".hint") ? cell : null;
  if (!shown) return;
  shown.classList.add("shown");
  const hint = shown.querySelector(".hint");
  const at = shown.getBoundingClientRect();
  const { width, height } = hint.getBoundingClientRect();
  const below = at.bottom + 6 + height <= innerHeight;
  hint.style.bottom = "auto";
  hint.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - height - 6)}px`;
  hint.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8))}px`;
}

// Tab goes from marked cell to marked cell, arrow keys to every cell.
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

for (const table of document.querySelectorAll("table")) {
  const focused = () => (table.contains(document.activeElement) ? document.activeElement : null);
  table.addEventListener("mouseover", (event) => show(event.target.closest("td") ?? focused()));
  table.addEventListener("mouseleave", () => show(focused()));
  table.addEventListener("focusin", (event) => show(event.target.closest("td")));
  table.addEventListener("focusout", () => show(null));
  table.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(null);
    const step = STEPS[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const row = table.rows[cell.parentElement.rowIndex + step[0]];
    row?.cells[cell.cellIndex + step[1]]?.focus();
  });
}
for (const event of ["scroll", "resize"]) addEventListener(event, () => show(shown), { capture: true, passive: true });
