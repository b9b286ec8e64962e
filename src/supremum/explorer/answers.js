// Looking up what was decided. No rule is here: every answer and every sentence is a place in the data.
"use strict";

class Decided {
  constructor(data) {
    this.data = data;
    this.lossy = new Set(data.lossy);
    this.rules = new Map(data.rules.map((rules) => [rules.name, rules]));
    this.question = data.operations[0][0];
    this.simple = data.formats.length + data.kinds.length;
  }

  // Whether the data has these operands for this operation: some operations are asked about arrays and kinds alone.
  has(operation, operands) {
    if (operands.length === 1) return operation === this.question;
    if (operands.length > 2 || operands.every(({ sort }) => sort !== "named")) return false;
    return operation === this.question || operands.every(({ sort, place }) => (sort === "named" ? place < this.simple : this.isWhole(operation)));
  }

  // Whether an operation is answered for numbers too.
  isWhole(operation) {
    return operation in this.data.rules[0].questions;
  }

  // Whether the data has the fix of a refusal, if there is one.
  hasFix(operation, operands) {
    return operation === this.question && operands.every(({ value, sort, place }) => value === undefined && sort === "named" && place < this.simple);
  }

  row(question, { sort, place }) {
    if (sort !== "complex") return question[sort][place];
    return question.complex[question.real[place[0]]][question.imaginary[place[1]]];
  }

  cell({ questions, sorts, operations }, operation, operands) {
    if (this.isWhole(operation)) {
      const question = questions[operation];
      const [a, b] = operands.map((operand) => this.row(question, operand));
      return operands.length === 1 ? question.alone[a] : this.data.tables[question.table][a][b];
    }
    const [a, b] = operands.map(({ place }) => sorts[place]);
    return this.data.tables[operations[operation]][a][b];
  }

  answer(rulesName, operation, operands) {
    const rules = this.rules.get(rulesName);
    const cell = this.cell(rules, operation, operands);
    const [result, text, ...paths] = this.data.cells[cell];
    const [name, dtype, account, category] = this.data.results[result];
    const climbed = paths.map((path) => this.data.paths[path]);
    const fill = { "\x05": dtype, "\x06": operation };
    operands.forEach((operand, i) => {
      fill[String.fromCharCode(1 + i)] = operand.written;
      fill[String.fromCharCode(3 + i)] = operand.name;
      fill[String.fromCharCode(7 + i)] = climbed[i].join(" -> ");
    });
    const changes = [];
    const filled = this.data.texts[text]
      .replace(/\x0e(\d):([^\x0f]*)\x0f/g, (_, place, steps) => {
        const { value } = operands[place];
        const formats = steps.replace(/[\x01-\x08]/g, (mark) => fill[mark]).split(",");
        const change = changeText(value, formats, this.data.conversions);
        if (change) changes.push(`${numberText(value)} ${change}`);
        return change && `, ${change}`;
      })
      .replace(/[\x01-\x08]/g, (mark) => fill[mark]);
    const outcome = [account, ...changes].join(", ");
    const style = changes.length ? "changed" : category;
    return {
      rules: rulesName, operation, result, name, dtype, account, outcome, style, filled,
      isLossy: this.lossy.has(text), paths: climbed.filter((path) => path.length > 1),
    };
  }

  // What to type for an answer that is not here.
  command(operation, operands, rules) {
    const words = operands.map(({ typed }) => (/^[\w.+-]+$/.test(typed) ? typed : `'${typed}'`));
    const named = operation === this.question ? [] : ["--operation", operation];
    return ["supremum explain", ...words, ...named, "--rules", rules].join(" ");
  }

  // How the second result differs from the first: name, symbol and meaning; null where it does not.
  difference(first, second, left, right) {
    const place = this.data.differing[first][second];
    if (place < 0) return null;
    const [name, [symbol, meaning]] = Object.entries(this.data.differences)[place];
    return { name, symbol, meaning: meaning.replaceAll("{left}", left).replaceAll("{right}", right) };
  }
}
