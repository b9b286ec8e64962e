"use strict";
// A row stays while one of the rows inside it does; a group or section whose rows are all hidden is hidden.
const filters = [...document.querySelectorAll("[data-filter]")];
const rows = [...document.querySelectorAll(".row")];
const order = document.getElementById("order");

function matches(row) {
  return filters.every(({ dataset: { filter }, value }) => {
    if (filter === "text") return row.dataset.text.toLowerCase().includes(value.toLowerCase());
    return !value || row.dataset[`facet${filter}`] === value;
  });
}

function filter() {
  const left = new Set(rows.filter(matches));
  const isLeft = (element) => [...element.querySelectorAll(".row")].some((row) => left.has(row));
  for (const row of rows) row.hidden = !left.has(row) && !isLeft(row);
  const isFiltered = filters.some(({ value }) => value);
  for (const element of document.querySelectorAll("section, .group")) element.hidden = isFiltered && !isLeft(element);
  document.getElementById("shown").textContent = isFiltered ? `${left.size} of ${rows.length} rows match` : "";
}

// Array.sort is stable, so rows that are alike stay in the first order.
function sort() {
  const key = (row) => Number(row.dataset.keys.split(" ")[order.selectedIndex]);
  for (const group of document.querySelectorAll(".rows")) {
    group.append(...rows.filter((row) => row.parentElement === group).sort((a, b) => key(b) - key(a)));
  }
}

for (const element of filters) element.addEventListener("input", filter);
order?.addEventListener("input", sort);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
