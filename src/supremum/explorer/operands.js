// What a person types, as an operand: the same texts that `supremum explain` takes.
"use strict";

const NUMBER = String.raw`(?:(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?|inf(?:inity)?|nan)`;
const INTEGER_TEXT = /^[+-]?\d+(?:_\d+)*$/;
const FLOAT_TEXT = new RegExp(`^[+-]?${NUMBER}$`, "i");
const COMPLEX_TEXT = new RegExp(`^([+-]?${NUMBER}(?![\\w.]))?(?:([+-]?)(${NUMBER})?j)?$`, "i");
const LONGEST_SHOWN = 256; // bits of an int

function floatOf(text) {
  const plain = text.replaceAll("_", "").toLowerCase();
  const sign = plain.startsWith("-") ? -1 : 1;
  const size = plain.replace(/^[+-]/, "");
  return sign * (size.startsWith("inf") ? Infinity : size === "nan" ? NaN : Number(size));
}

// A float as Python writes it.
function floatText(value) {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [digits, exponentText] = Math.abs(value).toExponential().split("e");
  const exponent = Number(exponentText);
  if (value !== 0 && (exponent < -4 || exponent >= 16)) {
    return `${sign}${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const all = digits.replace(".", "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${all}`;
  const whole = all.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${all.slice(exponent + 1) || "0"}`;
}

function complexText(real, imaginary) {
  const short = (value) => floatText(value).replace(/\.0$/, "");
  if (Object.is(real, 0)) return `${short(imaginary)}j`;
  const second = short(imaginary);
  return `(${short(real)}${/^-/.test(second) ? "" : "+"}${second}j)`;
}

function numberText(value) {
  if (Array.isArray(value)) return complexText(...value);
  if (typeof value === "number") return floatText(value);
  const bits = (value < 0n ? -value : value).toString(2).length;
  return bits > LONGEST_SHOWN ? `an integer of ${bits} bits` : String(value);
}

// How many of some ascending numbers are at most `value`: the class it falls in.
function classOf(cuts, value) {
  let low = 0;
  let high = cuts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Parser {
  constructor(data) {
    this.formats = new Map(data.formats.map((name, place) => [name, place]));
    this.kinds = new Map(data.kinds.map((name, place) => [name, data.formats.length + place]));
    this.aliases = new Map(Object.entries(data.aliases));
    this.simple = data.formats.length + data.kinds.length;
    this.operators = new Map(Object.entries(data.operators));
    this.operations = new Set(data.operations.map(([name]) => name));
    this.integers = data.numbers.integers.map(BigInt);
    this.whole = data.numbers.whole;
    this.fractional = data.numbers.fractional;
  }

  // The class of a float: whole ones, those with a fraction, then nan, -inf and inf.
  floatClass(value) {
    const special = this.whole.length + this.fractional.length + 2;
    if (Number.isNaN(value)) return special;
    if (!Number.isFinite(value)) return special + (value < 0 ? 1 : 2);
    if (Number.isInteger(value)) return classOf(this.whole, value);
    return this.whole.length + 1 + classOf(this.fractional, value);
  }

  // One operand, or null for what is none.
  parse(text) {
    return this.parseNumber(text) ?? this.parseName(text);
  }

  parseNumber(text) {
    if (INTEGER_TEXT.test(text)) {
      const value = BigInt(text.replaceAll("_", "").replace(/^\+/, ""));
      return { sort: "integers", place: classOf(this.integers, value), name: "int*", written: `int* (${numberText(value)})`, typed: text, value };
    }
    if (FLOAT_TEXT.test(text)) {
      const value = floatOf(text);
      return { sort: "floats", place: this.floatClass(value), name: "float*", written: `float* (${numberText(value)})`, typed: text, value };
    }
    const bare = /^\(.*\)$/.test(text) ? text.slice(1, -1) : text;
    const parts = bare && bare !== "+" && bare !== "-" ? COMPLEX_TEXT.exec(bare) : null;
    // A second part needs a sign of its own.
    if (!parts || (parts[1] !== undefined && /j$/i.test(bare) && !parts[2])) return null;
    const real = parts[1] === undefined ? 0 : floatOf(parts[1]);
    const imaginary = /j$/i.test(bare) ? floatOf(parts[2] + (parts[3] ?? "1")) : 0;
    const place = [this.floatClass(real), this.floatClass(imaginary)];
    const value = [real, imaginary];
    return { sort: "complex", place, name: "complex*", written: `complex* (${numberText(value)})`, typed: text, value };
  }

  parseName(text) {
    if (this.kinds.has(text)) {
      const isBool = text === "True" || text === "False";
      return { sort: "named", place: this.kinds.get(text), name: isBool ? "bool" : text, written: isBool ? `bool (${text})` : text, typed: text, value: BigInt(text === "True") };
    }
    const bare = text.endsWith("[]") ? text.slice(0, -2) : text;
    const name = this.aliases.get(bare) ?? bare;
    if (!this.formats.has(name)) return null;
    const place = this.formats.get(name) + (bare === text ? 0 : this.simple);
    return { sort: "named", place, name, written: bare === text ? name : `${name}[]`, typed: text };
  }

  // What stands in a line of text: operands with commas, spaces or an operator between, and the operation that this is;
  // or what is wrong with it.
  parseLine(line) {
    const operands = [];
    let operation = "";
    for (const word of line.trim().split(/[\s,]+/)) {
      if (word === "") continue;
      const found = this.parse(word);
      const parts = found ? [found] : this.parseSum(word);
      if (parts) {
        if (parts.length > 1) operation ||= this.operators.get("+");
        operands.push(...parts);
      } else if (this.operators.has(word) && operands.length && !(operation && operation !== this.operators.get(word))) {
        operation = this.operators.get(word);
      } else {
        return { operands: [], operation: "", problem: this.unknown(word) };
      }
    }
    if (operation && !this.operations.has(operation)) {
      return { operands: [], operation: "", problem: `this page was made without ${operation}: put a comma between the operands, choose an operation that it has, or write a page with supremum explore --operation ${operation}` };
    }
    return { operands, operation, problem: "" };
  }

  // Operands with nothing but a plus sign between.
  parseSum(word) {
    for (let at = word.indexOf("+", 1); at > 0; at = word.indexOf("+", at + 1)) {
      const first = this.parse(word.slice(0, at));
      const rest = first && (this.parse(word.slice(at + 1)) ?? null);
      const others = rest ? [rest] : first && this.parseSum(word.slice(at + 1));
      if (others) return [first, ...others];
    }
    return null;
  }

  unknown(word) {
    if (/^[-+*/%@<>=!&|^~]+$/.test(word)) {
      return `${word} is no operand: put one operation between two operands, or into the field beside`;
    }
    const bare = word.replace(/\[\]$/, "");
    const known = [...this.kinds.keys(), ...this.formats.keys()];
    const near = known
      .map((name) => [distance(bare.toLowerCase(), name.toLowerCase()) / Math.max(bare.length, name.length), name])
      .filter(([apart]) => apart <= 0.4)
      .sort(([a], [b]) => a - b)
      .slice(0, 3)
      .map(([, name]) => name);
    const hint = near.length ? `did you mean ${near.join(" or ")}?` : "give a dtype such as uint8, a weak kind such as int*, or a number";
    return `unknown operand ${word}: ${hint}`;
  }
}

// How many letters have to be changed, left out, put in, or swapped with the next one.
function distance(a, b) {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array(b.length).fill(0)]);
  for (let j = 1; j <= b.length; j += 1) rows[0][j] = j;
  for (let i = 1; i <= a.length; i += 1) {
    for (let j = 1; j <= b.length; j += 1) {
      const change = rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      rows[i][j] = Math.min(change, rows[i - 1][j] + 1, rows[i][j - 1] + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.length][b.length];
}
