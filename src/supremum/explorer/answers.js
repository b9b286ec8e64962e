// Looking up what was decided. No rule is here: every answer and every sentence is a place in the data.
"use strict";

// Numbers that are stored as steps from each to the next.
function summed(steps) {
  let sum = 0;
  return steps.map((step) => (sum += step));
}

// Square tables whose rows are stored as changes of what earlier rows predict.
function unpackedTables({ tables, back, swaps, changed, places, cells }) {
  const rows = [];
  const swapped = []; // of each cell the last one that had its operands in the other order
  const recent = []; // the cells that were changes, the most recent last
  let next = 0;
  function recentCell(since) {
    const cell = since ? recent.splice(recent.length - since, 1)[0] : recent.length;
    recent.push(cell);
    return cell;
  }
  function unpackedRow(number, width, above) {
    const row = back[number] ? rows[number - back[number]].slice(0, width) : [];
    if (swaps[number]) above.forEach((other, i) => (row[i] = swapped[other[above.length]] ?? row[i]));
    let place = 0;
    for (const end = next + changed[number]; next < end; next += 1) {
      place += places[next];
      row[place] = recentCell(cells[next]);
    }
    rows.push(row);
  }
  return tables.map((steps) => {
    const table = [];
    for (const number of summed(steps)) {
      if (number === rows.length) unpackedRow(number, steps.length, table);
      table.forEach((other, i) => (swapped[other[table.length]] = rows[number][i]));
      table.push(rows[number]);
    }
    return table;
  });
}

class Decided {
  constructor(data) {
    this.data = data;
    this.tables = unpackedTables(data.tables);
    this.lossy = new Set(data.lossy);
    this.columns = data.cells.map(summed); // of each cell the result, the text and the paths of two operands
    this.rules = new Map(data.rules.map((rules) => [rules.name, rules]));
    this.operations = new Map(data.operations.map(([name], place) => [name, place]));
    this.question = data.operations[0][0];
    this.simple = data.formats.length + data.kinds.length;
  }

  // Whether the data has these operands for this operation: some operations are asked about arrays and kinds alone.
  has(operation, operands) {
    if (operation === this.question) return operands.length <= 2;
    return operands.length === 2 && (this.isWhole(operation) || operands.every(({ sort, place }) => sort === "named" && place < this.simple));
  }

  // Whether an operation is answered for numbers and 0-d arrays too.
  isWhole(operation) {
    return operation in this.data.rules[0].questions;
  }

  row(question, { sort, place }) {
    if (sort !== "complex") return question[sort][place];
    return question.complex[question.real[place[0]]][question.imaginary[place[1]]];
  }

  cell({ questions, sorts, operations }, operation, operands) {
    if (this.isWhole(operation)) {
      const question = questions[operation];
      const [a, b] = operands.map((operand) => this.row(question, operand));
      return operands.length === 1 ? question.alone[a] : this.tables[question.table][a][b];
    }
    const [a, b] = operands.map(({ place }) => sorts[place]);
    return this.tables[operations[this.operations.get(operation) - 1]][a][b];
  }

  text(number) {
    const { lines, columns } = this.data.texts;
    return columns.flatMap((column) => (column[number] < 0 ? [] : [lines[column[number]]])).join("\n");
  }

  answer(rulesName, operation, operands) {
    const rules = this.rules.get(rulesName);
    const cell = this.cell(rules, operation, operands);
    const [result, text, ...paths] = this.columns.map((column) => column[cell]);
    const [name, dtype, account, category] = this.data.results[result];
    const climbed = paths.map((path) => this.data.paths[path]);
    const fill = { "\x05": dtype, "\x06": operation };
    operands.forEach((operand, i) => {
      fill[String.fromCharCode(1 + i)] = operand.written;
      fill[String.fromCharCode(3 + i)] = operand.name;
      fill[String.fromCharCode(7 + i)] = climbed[i].join(" -> ");
    });
    const changes = [];
    const filled = this.text(text)
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
