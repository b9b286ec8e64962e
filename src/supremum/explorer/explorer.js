// The page: what is chosen, the answers to what is typed, and the link that leads back here.
"use strict";

const find = (id) => document.getElementById(id);
const CHANGE = new RegExp(`^(.*?)((?:${HOWS.join("|")}) to .*)?$`);
const CHOICES = { operation: "result_type", against: "", types: "standard" };

// An element with attributes and children; texts become text and never markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The lines of an explanation as a list of terms.
function explanation(filled) {
  const list = make("dl");
  for (const line of filled.split("\n")) {
    const [label, text] = line.split("\t");
    const [, before, change] = /^[ab]$/.test(label) ? CHANGE.exec(text) : [, text];
    // An arrow is not to be broken at its hyphen.
    const parts = before.split(/(->)/).map((part) => (part === "->" ? make("span", { class: "arrow" }, part) : part));
    if (change) parts.push(make("span", { class: "changed" }, change));
    list.append(make("dt", {}, label), make("dd", {}, ...parts));
  }
  return list;
}

// The sentences that say why; of a refusal the last is the one that refuses.
function reasons(filled) {
  const rows = filled.split("\n").map((row) => row.split("\t"));
  const first = rows.findIndex(([label]) => label === "why");
  return rows.slice(first).filter(([label]) => label !== "fix").map(([, text]) => text);
}

function grouped(items, key) {
  const groups = new Map();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return [...groups.values()];
}

// The data has the fixes of some refusals; the command line finds the others.
function whereFixesAre(decided, { rules, operation, result, filled }, operands) {
  if (result !== 0 || filled.includes("\nfix\t") || decided.hasFix(operation, operands)) return [];
  return [make("p", { class: "quiet" }, "Casts that help, if any do: ", make("code", {}, decided.command(operation, operands, rules)))];
}

class Page {
  constructor(data) {
    this.decided = new Decided(data);
    this.choices = { ...CHOICES, rules: data.inForce };
    this.parser = new Parser(data);
    this.grid = new Grid(this.decided, find("table"), find("detail"), (pair) => this.link(pair));
    find("operands").addEventListener("input", () => { this.answer(); this.link(); });
    find("operation").addEventListener("change", () => { this.unwrite(); this.answer(); this.draw(); });
    for (const id of ["rules", "against", "types"]) find(id).addEventListener("change", () => this.draw());
    for (const button of document.querySelectorAll(".example")) {
      button.addEventListener("click", () => { find("operands").value = button.textContent; this.answer(); this.link(); });
    }
    window.addEventListener("hashchange", () => this.read());
    this.read();
  }

  // Take everything from the link.
  read() {
    const chosen = new URLSearchParams(location.hash.slice(1));
    for (const [id, usual] of Object.entries(this.choices)) {
      const known = [...find(id).options].some((option) => option.value === chosen.get(id));
      find(id).value = known ? chosen.get(id) : usual;
    }
    find("operands").value = chosen.get("ask") ?? "";
    this.answer();
    this.draw(chosen.get("cell")?.split(","));
  }

  // Put everything into the link.
  link(pair = this.grid.pair) {
    const chosen = new URLSearchParams();
    for (const [id, usual] of Object.entries(this.choices)) if (find(id).value !== usual) chosen.set(id, find(id).value);
    if (find("operands").value) chosen.set("ask", find("operands").value);
    if (pair) chosen.set("cell", pair.join(","));
    history.replaceState(null, "", `#${chosen}`);
  }

  draw(pair = this.grid.pair) {
    const { summary, source } = this.decided.rules.get(find("rules").value);
    find("about").textContent = `${find("rules").value}: ${summary}. Source: ${source}.`;
    const counts = this.grid.draw(find("rules").value, find("against").value, find("operation").value, find("types").value, pair);
    find("counts").replaceChildren(...counts);
    this.link();
  }

  // What is chosen in the list stands in the place of an operator between the operands.
  unwrite() {
    const { operands, operation } = this.parser.parseLine(find("operands").value);
    if (operation) find("operands").value = operands.map(({ typed }) => typed).join(", ");
  }

  answer() {
    const line = find("operands").value;
    const { operands, operation: written, problem } = this.parser.parseLine(line);
    if (written && written !== find("operation").value) {
      find("operation").value = written;
      this.draw();
    }
    const operation = find("operation").value;
    const said = problem || (operands.length ? this.missing(operation, operands) : "");
    find("problem").textContent = said;
    find("operands").setAttribute("aria-invalid", String(Boolean(problem)));
    if (said || !operands.length) {
      find("answers").replaceChildren();
      find("spoken").textContent = "";
      return;
    }
    const answers = [...this.decided.rules.keys()].map((name) => this.decided.answer(name, operation, operands));
    const groups = grouped(answers, ({ outcome }) => outcome).sort((a, b) => (a[0].result === 0) - (b[0].result === 0) || b.length - a.length);
    find("answers").replaceChildren(...groups.map((group) => answerElement(this.decided, group, operands)));
    find("spoken").textContent = groups.map((group) => `${group[0].outcome}: ${group.map(({ rules }) => rules).join(", ")}`).join("; ");
  }

  // What to do about a question that the page has no answers to.
  missing(operation, operands) {
    if (this.decided.has(operation, operands)) return "";
    const command = this.decided.command(operation, operands, "all");
    if (operands.length > 2) return `this page answers for one operand or two, and these are ${operands.length}: ask with ${command}`;
    if (operands.length < 2) return `${operation} takes two operands: give another`;
    const areNumbers = operands.every(({ sort }) => sort !== "named");
    if (this.decided.isWhole(operation)) return `this page has no ${areNumbers ? "pairs of numbers" : `arrays without dimensions with ${operation}`}: ask with ${command}`;
    return `with ${operation} this page knows arrays, weak kinds and bools, not numbers and 0-d arrays: ask with ${command}`;
  }
}

function answerElement(decided, group, operands) {
  const [{ outcome, style }] = group;
  const box = make("div", { class: "answer" }, make("h3", { class: style }, outcome));
  const accounts = grouped(group, ({ filled }) => filled);
  for (const alike of accounts) {
    const names = alike.map(({ rules }) => rules).join(", ");
    const why = reasons(alike[0].filled).at(alike[0].result === 0 ? -1 : 0);
    const told = [explanation(alike[0].filled), ...whereFixesAre(decided, alike[0], operands)];
    box.append(make("details", {}, make("summary", {}, names, make("span", {}, why)), ...told));
  }
  return box;
}

async function load() {
  const bytes = Uint8Array.from(atob(find("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Page(await new Response(stream).json());
}

window.explorer = load();
