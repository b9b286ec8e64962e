// What a number becomes in a format, exactly: an int is a BigInt, a float a number, a complex number a pair of floats.
"use strict";

const HOWS = ["wraps", "overflows", "underflows", "rounds"]; // the worst first

// A finite number as a product of an integer and a power of two.
function exactly(value) {
  if (typeof value === "bigint") return [value, 0];
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const code = Number((bits >> 52n) & 0x7ffn);
  const digits = (bits & 0xfffffffffffffn) | (code ? 1n << 52n : 0n);
  return [bits >> 63n ? -digits : digits, Math.max(code, 1) - 1075];
}

function magnitude(value) {
  return value < 0n ? -value : value;
}

function wrapped(value, { bits, signed }) {
  if (!bits) return BigInt(value != 0); // a bool
  return signed ? BigInt.asIntN(bits, BigInt(value)) : BigInt.asUintN(bits, BigInt(value));
}

function beyond(value, row) {
  const sign = value < 0 ? -1 : 1;
  return { inf: sign * Infinity, max: sign * row.max, nan: NaN }[row.beyond];
}

// To the nearest number, ties to even.
function rounded(value, row) {
  if (Number.isNaN(value)) return row.beyond === "max" ? -0 : NaN; // a format without infinity and NaN
  if (!row.signed && value < 0) return NaN;
  if (value === Infinity || value === -Infinity) return beyond(value, row);
  const [digits, power] = exactly(value);
  const size = magnitude(digits);
  if (!size) return !row.zero ? NaN : row.negativeZero ? Number(value) : 0;
  const exponent = size ? Math.max(size.toString(2).length - 1 + power, row.lowest) : row.lowest;
  const shift = BigInt(exponent - row.mantissa - power);
  let nearest = shift > 0n ? size >> shift : size << -shift;
  if (shift > 0n) {
    const twice = 2n * (size - (nearest << shift));
    const unit = 1n << shift;
    if (twice > unit || (twice === unit && nearest & 1n)) nearest += 1n;
  }
  if (!nearest && !row.zero) nearest = 1n;
  if (!nearest && !row.negativeZero) return 0;
  const found = Number(nearest) * 2 ** (exponent - row.mantissa);
  if (found > row.max) return beyond(value, row);
  return value < 0 || Object.is(value, -0) ? -found : found;
}

function converted(value, rows) {
  return rows.reduce((found, row) => ("bits" in row ? wrapped(found, row) : rounded(found, row)), value);
}

// Whether two numbers are further apart than half of a third one times a power of two.
function isFurther(value, becomes, times, power) {
  const [[a, powerOfA], [b, powerOfB], [limit, powerOfTimes]] = [value, becomes, times].map(exactly);
  const powerOfLimit = powerOfTimes + power - 1;
  const least = Math.min(powerOfA, powerOfB, powerOfLimit);
  const at = (digits, itsPower) => digits << BigInt(itsPower - least);
  return magnitude(at(a, powerOfA) - at(b, powerOfB)) > magnitude(at(limit, powerOfLimit));
}

// How a real number changes; null where it does not.
function howChanged(value, becomes, row) {
  // A BigInt equals the number that it is.
  if ((Number.isNaN(value) && Number.isNaN(becomes)) || value == becomes) return null;
  if (row.bits === 0 && BigInt(value != 0) === becomes) return null; // whether it is zero is all that was asked
  if ("bits" in row) return row.bits || typeof value === "bigint" ? "wraps" : "underflows";
  if (!Number.isFinite(becomes) || value === Infinity || value === -Infinity) return "overflows";
  if (becomes === 0) return "underflows";
  if (Math.abs(becomes) === row.max && isFurther(value, becomes, 1, row.highest - row.mantissa)) return "overflows";
  return typeof value === "bigint" || isFurther(value, becomes, becomes, -row.mantissa) ? "rounds" : null;
}

// What an explanation says of a number that changes.
function changeText(value, names, conversions) {
  const rows = names.map((name) => conversions[name]);
  const isComplex = Array.isArray(value);
  const parts = isComplex ? value : [value];
  const found = parts.map((part) => converted(part, rows));
  const hows = parts.map((part, i) => howChanged(part, found[i], rows.at(-1)));
  const how = HOWS.find((each) => hows.includes(each));
  if (!how) return "";
  return `${how} to ${numberText(isComplex ? found : found[0])}`;
}
