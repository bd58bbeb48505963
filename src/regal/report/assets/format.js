// Numbers as people read them: what report/format.py says, digit by digit.

const TIME_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];
const BYTE_UNITS = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];

function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

function exactBytes(count) {
  return `${grouped(count)} B`;
}

function shortBytes(count) {
  for (const [unit, name] of BYTE_UNITS) {
    if (count >= unit) return `${rounded(count, unit, [2, 1, 0])} ${name}`;
  }
  return `${Math.round(count)} B`;
}

function duration(ns) {
  for (const [unit, name] of TIME_UNITS) {
    if (ns >= unit) return `${rounded(ns, unit, [3, 2, 1])} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}

// Fewer digits from 10 units on, and from 100 units on; halves go up.
function rounded(count, unit, [below10, below100, above]) {
  const digits = count < 10 * unit ? below10 : count < 100 * unit ? below100 : above;
  const scaled = Math.floor((count * 10 ** digits) / unit + 0.5);
  const whole = grouped(Math.floor(scaled / 10 ** digits));
  if (digits === 0) return whole;
  return `${whole}.${String(scaled % 10 ** digits).padStart(digits, '0')}`;
}

const FORMS = {
  bytes: exactBytes,
  short: shortBytes,
  duration,
  seconds: (value) => duration(Math.round(value * 1e9)),
  count: grouped,
  text: String,
};

function plural(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}
