// What the page embeds, and quick ways to ask it.

const MOST_COLORS = 9;
const OTHER = MOST_COLORS; // the color of kinds that take little time, inputs, and workspaces

function embedded(name) {
  return JSON.parse(document.getElementById(name).textContent);
}

// Returns a story with its columns as typed arrays, and per side the indexes that charts need.
function prepared(story) {
  story.isStep = story.clock === 'step';
  story.kindColor = kindColors(story);
  story.colorOfOp = (op) => (op < 0 ? OTHER : story.kindColor.get(story.ops.kind[op]) ?? OTHER);
  story.end = 1;
  for (const label of ['before', 'after']) {
    const side = story.sides[label];
    side.label = label;
    story.end = Math.max(story.end, side.end);
    for (const table of [side.runs, side.held, side.sent]) {
      for (const key of Object.keys(table)) {
        if (key !== 'readers') table[key] = Float64Array.from(table[key]);
      }
      table.end = table.start.map((start, i) => start + table.length[i]);
    }
    const n = story.places.length;
    side.lanes = grouping(side.runs.device, n).map((rows) => byStart(rows, side.runs));
    side.heldOn = grouping(side.held.device, n);
    side.curves = side.heldOn.map((rows) => curve(rows, side.held));
    side.links = links(side.sent);
  }
  return story;
}

// Kinds by the time that they take, most first; each of the first gets a color of its own.
function kindColors(story) {
  const total = new Map();
  const { length } = story.sides.after.runs;
  story.ops.kind.forEach((kind, op) => total.set(kind, (total.get(kind) ?? 0) + length[op]));
  const ranked = [...total].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return new Map(ranked.slice(0, MOST_COLORS).map(([kind], color) => [kind, color]));
}

function grouping(column, count) {
  const groups = Array.from({ length: count }, () => []);
  column.forEach((group, row) => groups[group].push(row));
  return groups;
}

function byStart(rows, table) {
  return rows.sort((a, b) => table.start[a] - table.start[b] || a - b);
}

// The links that carry something: [{source, target, rows}], rows by start.
function links(sent) {
  const found = new Map();
  sent.source.forEach((source, row) => {
    const target = sent.target[row];
    const key = `${source} ${target}`;
    if (!found.has(key)) found.set(key, { source, target, rows: [] });
    found.get(key).rows.push(row);
  });
  const sorted = [...found.values()].sort((a, b) => a.source - b.source || a.target - b.target);
  for (const link of sorted) byStart(link.rows, sent);
  return sorted;
}

// Live bytes over time: levels[i] from times[i] on.
function curve(rows, held) {
  const changes = new Map([[0, 0]]);
  for (const row of rows) {
    changes.set(held.start[row], (changes.get(held.start[row]) ?? 0) + held.bytes[row]);
    changes.set(held.end[row], (changes.get(held.end[row]) ?? 0) - held.bytes[row]);
  }
  const times = Float64Array.from(changes.keys()).sort();
  const levels = new Float64Array(times.length);
  let level = 0;
  let peak = 0;
  times.forEach((time, i) => {
    level += changes.get(time);
    levels[i] = level;
    if (level > levels[peak]) peak = i;
  });
  return { times, levels, peak: levels[peak], peakTime: times[peak] };
}

// The last position whose value is not above `value`, or -1. `at(i)` ascends.
function lastAt(count, at, value) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function levelAt({ times, levels }, time) {
  return levels[Math.max(0, lastAt(times.length, (i) => times[i], time))];
}

// The op that a device runs at a time, or -1.
function opAt(side, device, time) {
  const lane = side.lanes[device];
  const i = lastAt(lane.length, (k) => side.runs.start[lane[k]], time);
  return i >= 0 && side.runs.end[lane[i]] > time ? lane[i] : -1;
}

// What is held on a device at a time, largest first.
function heldAt(side, device, time) {
  const { start, end, bytes } = side.held;
  return side.heldOn[device]
    .filter((row) => start[row] <= time && time < end[row])
    .sort((a, b) => bytes[b] - bytes[a] || a - b);
}

function heldName(story, side, row) {
  const name = side.held.name[row];
  if (name >= 0) return story.strings[name];
  return `workspace of ${story.strings[story.ops.name[side.held.maker[row]]]}`;
}

function opName(story, op) {
  return story.strings[story.ops.name[op]];
}

function opKind(story, op) {
  return story.strings[story.ops.kind[op]];
}

function momentText(story, time) {
  return story.isStep ? `step ${grouped(Math.floor(time))}` : duration(time);
}

function spanText(story, start, end) {
  if (story.isStep) return `steps ${grouped(start)}–${grouped(end - 1)}`;
  return `${duration(start)} – ${duration(end)} (${duration(end - start)})`;
}
