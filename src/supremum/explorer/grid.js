// The table of one rule set, beside another or alone: drawn, moved in, and explained cell by cell.
"use strict";

const PAGE_OF_ROWS = 8;
const LOSS = "with a lossy cast";

// The long name of a small float may be broken after its exponent and mantissa, so that columns stay narrow.
function breakable(code) {
  return code.includes("_") ? [code.slice(0, 7), make("wbr"), code.slice(7)] : [code];
}

class Grid {
  constructor(decided, table, detail, onMove) {
    Object.assign(this, { decided, table, detail, onMove, pair: null });
    const { data } = decided;
    const places = new Map([...data.formats, ...data.kinds].map((name, place) => [name, place]));
    this.types = data.types.map(([name, code, isStandard]) => ({ name, code, isStandard, written: name, typed: name, sort: "named", place: places.get(name) }));
    this.codes = new Map(data.types.map(([name, code]) => [name, code])).set("-", "-");
    table.addEventListener("keydown", (event) => this.move(event));
    table.addEventListener("focusin", ({ target }) => this.enter(target.closest("td[tabindex]")));
    table.addEventListener("mouseover", ({ target }) => this.explain(target.closest("td[tabindex]")));
    table.addEventListener("mouseleave", () => this.explain(this.chosen()));
  }

  // Draw the table; what it returns says how many cells differ in which way.
  draw(left, right, operation, types, pair) {
    Object.assign(this, { left, right, operation });
    this.shown = this.types.filter(({ isStandard }) => isStandard || types === "all");
    const counts = new Map();
    const rows = this.shown.map((a) => {
      const head = make("th", { scope: "row" }, make("span", { class: "full" }, a.name), make("span", { class: "code", "aria-hidden": "true" }, a.code));
      return make("tr", {}, head, ...this.shown.map((b) => this.drawCell(a, b, counts)));
    });
    const heads = this.shown.map(({ name }) => make("th", { scope: "col" }, make("span", {}, name)));
    const title = `${operation} under ${left}${right ? `, compared with ${right}` : ""}`;
    this.table.classList.toggle("compared", Boolean(right));
    this.table.replaceChildren(
      make("caption", {}, make("span", {}, title)), make("thead", {}, make("tr", {}, make("td"), ...heads)), make("tbody", {}, ...rows),
    );
    const known = pair && pair.every((name) => this.shown.some((type) => type.name === name));
    this.pair = known ? pair : null;
    const entry = this.chosen() ?? this.cells()[0][0];
    entry.tabIndex = 0;
    this.explain(this.chosen());
    return right ? this.countElements(counts) : [];
  }

  drawCell(a, b, counts) {
    const one = this.decided.answer(this.left, this.operation, [a, b]);
    const code = ({ name, isLossy }) => make("span", isLossy ? { class: "lossy" } : {}, ...breakable(this.codes.get(name)));
    const told = ({ outcome, isLossy }) => (isLossy ? `${outcome}, ${LOSS}` : outcome);
    const cell = make("td", { tabindex: "-1", class: one.style, "data-pair": `${a.name},${b.name}` }, code(one));
    let label = `${a.name}, ${b.name}: ${told(one)}`;
    if (this.right) {
      const other = this.decided.answer(this.right, this.operation, [a, b]);
      const how = this.decided.difference(one.result, other.result, this.left, this.right);
      cell.classList.add(how ? "differs" : "same");
      if (how) {
        counts.set(how.name, { ...how, count: (counts.get(how.name)?.count ?? 0) + 1 });
        cell.append(make("small", {}, `${how.symbol}\u202f`, code(other)));
        cell.classList.replace(one.style, other.style);
        label += `; ${how.meaning}: ${told(other)}`;
      }
    }
    cell.setAttribute("aria-label", label);
    return cell;
  }

  countElements(counts) {
    const all = [...counts.values()].sort((a, b) => b.count - a.count);
    const total = all.reduce((sum, { count }) => sum + count, 0);
    const first = make("span", {}, `${total} of ${this.shown.length ** 2} cells differ.`);
    return [first, ...all.map(({ symbol, count, name, meaning }) => make("span", { "data-how": name }, make("b", {}, `${symbol} ${count}`), ` ${meaning}`))];
  }

  cells() {
    return [...this.table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
  }

  chosen() {
    return this.pair && this.table.querySelector(`td[data-pair="${CSS.escape(this.pair.join(",")).replaceAll("\\,", ",")}"]`);
  }

  enter(cell) {
    if (!cell) return;
    for (const other of this.table.querySelectorAll("td[tabindex='0']")) other.tabIndex = -1;
    cell.tabIndex = 0;
    this.pair = cell.dataset.pair.split(",");
    this.explain(cell);
    this.onMove(this.pair);
  }

  move(event) {
    const cells = this.cells();
    const row = cells.findIndex((line) => line.includes(event.target));
    if (row < 0 || event.altKey || event.metaKey) return;
    const column = cells[row].indexOf(event.target);
    const last = cells.length - 1;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? last : row, last],
      PageUp: [row - PAGE_OF_ROWS, column], PageDown: [row + PAGE_OF_ROWS, column],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    const [line, place] = to.map((where) => Math.min(Math.max(where, 0), last));
    cells[line][place].focus();
  }

  explain(cell) {
    if (!cell) return;
    const pair = cell.dataset.pair.split(",").map((name) => this.shown.find((type) => type.name === name));
    const names = [this.left, this.right].filter((name, i, all) => name && all.indexOf(name) === i);
    const parts = names.flatMap((name) => {
      const answer = this.decided.answer(name, this.operation, pair);
      const { outcome, style, filled, paths } = answer;
      const ways = paths.map((path) => make("ol", { class: "path", "aria-label": `Way of ${path[0]} in the lattice` }, ...path.map((node) => make("li", {}, node))));
      const head = make("h4", {}, `${name}: `, make("span", { class: `mono ${style}` }, outcome));
      return [head, explanation(filled), ...whereFixesAre(this.decided, answer, pair), ...ways];
    });
    this.detail.replaceChildren(make("h3", {}, `${this.operation}(${pair.map(({ name }) => name).join(", ")})`), ...parts);
  }
}
