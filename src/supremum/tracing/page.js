"use strict";
// A cause stays while one of its casts does; what is around casts goes when all of them are hidden.
const filters = [...document.querySelectorAll("[data-filter]")];
const casts = [...document.querySelectorAll("[data-class]")];

function matches(element) {
  return filters.every(({ dataset: { filter }, value }) => {
    const own = element.dataset[filter];
    return filter === "text" ? own.toLowerCase().includes(value.toLowerCase()) : !value || own === value;
  });
}

function filter() {
  for (const element of casts) element.hidden = !matches(element);
  for (const element of document.querySelectorAll(".follow, .group, .cause")) {
    const inside = [...element.querySelectorAll("[data-class]")].some((each) => !each.hidden);
    element.hidden = element.matches(".cause") ? element.hidden && !inside : !inside;
  }
  const left = casts.filter((element) => !element.hidden).length;
  const isFiltered = filters.some(({ value }) => value);
  document.getElementById("shown").textContent = isFiltered ? `${left} of ${casts.length} places match` : "";
}

for (const element of filters) element.addEventListener("input", filter);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
