"use strict";
// Rows are hidden and reordered within their section; a section without rows that match is hidden.
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
  for (const row of rows) row.hidden = !matches(row);
  const isFiltered = filters.some(({ value }) => value);
  for (const section of document.querySelectorAll("section")) {
    section.hidden = isFiltered && ![...section.querySelectorAll(".row")].some((row) => !row.hidden);
  }
  const left = rows.filter((row) => !row.hidden).length;
  document.getElementById("shown").textContent = isFiltered ? `${left} of ${rows.length} rows match` : "";
}

// Array.sort is stable, so rows that are alike stay in the first order.
function sort() {
  const key = (row) => Number(row.dataset.keys.split(" ")[order.selectedIndex]);
  for (const section of document.querySelectorAll("section")) {
    const own = rows.filter((row) => section.contains(row)).sort((a, b) => key(b) - key(a));
    section.querySelector(".rows")?.append(...own);
  }
}

for (const element of filters) element.addEventListener("input", filter);
order?.addEventListener("input", sort);
document.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
