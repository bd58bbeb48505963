// What each device runs and each link carries, before and after.

const LANE = 24;
const LINK = 14;
const TITLE = 22;
const GAP = 4;

function timelinePainter(story, onSelect) {
  const rows = layoutRows(story);
  const height = rows.length ? rows[rows.length - 1].y + rows[rows.length - 1].height + 10 : 40;
  let hovered = null; // {row, item}

  function draw(chart, pen) {
    for (const row of rows) {
      if (row.type === 'title') {
        pen.fillStyle = css(row.side.label);
        pen.font = `600 ${FONT}`;
        pen.fillText(row.text, 4, row.y + TITLE / 2);
        pen.font = FONT;
        continue;
      }
      pen.fillStyle = css('lane');
      pen.fillRect(chart.left, row.y, chart.width - chart.left - RIGHT, row.height);
      pen.fillStyle = css('soft');
      pen.fillText(fitted(pen, row.text, chart.left - 10), 4, row.y + row.height / 2);
      pen.save();
      pen.beginPath();
      pen.rect(chart.left, row.y, chart.width - chart.left - RIGHT, row.height);
      pen.clip();
      drawLane(chart, pen, row);
      pen.restore();
    }
    for (const label of story.isStep ? [] : ['before', 'after']) drawEnd(chart, pen, label);
  }

  function drawEnd(chart, pen, label) {
    const side = story.sides[label];
    const own = rows.filter((row) => row.side === side && row.type !== 'title');
    if (own.length === 0 || side.end < chart.view.from || side.end > chart.view.to) return;
    const last = own[own.length - 1];
    const x = Math.round(chart.x(side.end)) + 0.5;
    line(pen, css(label), x, own[0].y - 3, x, last.y + last.height + 3);
  }

  // What is narrower than a pixel shares its column with others; the longest gives the color.
  function drawLane(chart, pen, row) {
    const { start, end, length } = row.table;
    const { from, to } = chart.view;
    const colors = row.colors();
    let [column, best] = [-1, -1];
    const flush = () => {
      if (best < 0) return;
      pen.fillStyle = colors[row.color(best)];
      pen.fillRect(column, row.y, 1, row.height);
      best = -1;
    };
    const first = row.isSerial ? Math.max(0, lastAt(row.items.length, (i) => start[row.items[i]], from)) : 0;
    for (let i = first; i < row.items.length; i += 1) {
      const item = row.items[i];
      if (start[item] > to) break;
      if (end[item] < from) continue;
      const x0 = chart.x(start[item]);
      const width = chart.x(end[item]) - x0;
      if (width < 1) {
        if (Math.floor(x0) !== column) {
          flush();
          column = Math.floor(x0);
        }
        if (best < 0 || length[item] > length[best]) best = item;
        continue;
      }
      flush();
      pen.fillStyle = colors[row.color(item)];
      pen.fillRect(x0, row.y, Math.max(1, width - (width > 3 ? 1 : 0)), row.height);
      if (width > 34 && row.height >= LANE) label(chart, pen, row, item, x0, width);
    }
    flush();
  }

  function label(chart, pen, row, item, x0, width) {
    const left = Math.max(x0, chart.left) + 4;
    const text = labelFor(pen, row.name(item), x0 + width - left - 4);
    if (!text) return;
    pen.fillStyle = css('on-color');
    pen.fillText(text, left, row.y + row.height / 2);
  }

  function find(chart, x, y) {
    const row = rows.find((r) => r.type !== 'title' && r.y <= y && y < r.y + r.height);
    if (!row || x < chart.left) return null;
    const time = chart.time(x);
    const { start, end } = row.table;
    const slack = chart.time(x + 2) - time;
    let nearest = null;
    const last = lastAt(row.items.length, (i) => start[row.items[i]], time + slack);
    for (let i = last; i >= 0 && i > last - 40; i -= 1) {
      const item = row.items[i];
      const off = Math.max(start[item] - time, time - end[item], 0);
      if (off <= slack && (nearest === null || off < nearest.off)) nearest = { row, item, off };
    }
    return nearest;
  }

  function overlay(chart, pen) {
    if (hovered) outline(chart, pen, hovered.row, hovered.item, css('ink'));
    if (hovered?.row.type === 'link') drawFlow(chart, pen, hovered.row, hovered.item);
    const op = chart.view.selected;
    if (op < 0) return;
    for (const row of rows) {
      const isHere = row.type === 'lane' && row.side.runs.device[op] === row.device;
      if (isHere) outline(chart, pen, row, op, css('mark'));
    }
  }

  function outline(chart, pen, row, item, color) {
    const x0 = Math.max(chart.left, chart.x(row.table.start[item]));
    const x1 = Math.min(chart.width - RIGHT, chart.x(row.table.end[item]));
    if (x1 < chart.left || x0 > chart.width - RIGHT) return;
    pen.strokeStyle = color;
    pen.lineWidth = 2;
    pen.strokeRect(x0 - 1, row.y - 1, Math.max(3, x1 - x0 + 1), row.height + 2);
    pen.lineWidth = 1;
  }

  // From the op that made the tensor over its transfer to the ops that read it.
  function drawFlow(chart, pen, row, item) {
    const { sent, runs } = row.side;
    const lane = (device) => rows.find(
      (r) => r.type === 'lane' && r.side === row.side && r.device === device,
    );
    const middle = (r) => r.y + r.height / 2;
    const [source, target] = [lane(sent.source[item]), lane(sent.target[item])];
    const maker = sent.maker[item];
    if (maker >= 0) {
      arrow(chart, pen, runs.end[maker], middle(source), sent.start[item], middle(row));
    }
    for (const reader of sent.readers[item]) {
      arrow(chart, pen, sent.end[item], middle(row), runs.start[reader], middle(target));
    }
  }

  function arrow(chart, pen, t0, y0, t1, y1) {
    const [x0, x1] = [chart.x(t0), chart.x(t1)];
    const bend = Math.max(12, Math.abs(x1 - x0) / 2);
    pen.strokeStyle = css('ink');
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    pen.stroke();
    pen.fillStyle = css('ink');
    pen.beginPath();
    pen.arc(x1, y1, 3, 0, 2 * Math.PI);
    pen.fill();
    pen.lineWidth = 1;
  }

  function describe({ row, item }) {
    return row.type === 'link' ? sentLines(story, row.side, item) : opLines(story, row.side, item);
  }

  function say(time) {
    const parts = [momentText(story, time)];
    for (const row of rows.filter((r) => r.type === 'lane')) {
      const op = opAt(row.side, row.device, time);
      const name = story.places[row.device].name;
      parts.push(`${row.side.label} ${name} ${op < 0 ? 'idle' : `runs ${opName(story, op)}`}`);
    }
    return parts;
  }

  return {
    name: story.isStep ? 'Order of the ops' : 'Devices and links over time',
    height: () => height + AXIS,
    draw,
    overlay,
    hover: (chart, x, y) => {
      hovered = find(chart, x, y);
      return hovered && describe(hovered);
    },
    leave: () => {
      hovered = null;
    },
    say,
    pick: (chart, x, y) => {
      const found = find(chart, x, y);
      onSelect(found && found.row.type === 'lane' ? found.item : -1);
    },
    pickAt: (time) => onSelect(story.places.reduce(
      (found, _, device) => (found >= 0 ? found : opAt(story.sides.after, device, time)), -1)),
    stops: () => Float64Array.from(new Set(story.sides.after.runs.start)).sort(),
  };
}

// A name, or as much of its end as fits: names begin with the modules that they lie in.
function labelFor(pen, name, width) {
  const parts = name.split('/');
  for (let from = 0; from < parts.length - 1; from += 1) {
    const tail = parts.slice(from).join('/');
    if (pen.measureText(tail).width <= width) return tail;
  }
  return fitted(pen, parts[parts.length - 1], width);
}

// One row per device and per link that carries something, under the title of each plan.
function layoutRows(story) {
  const rows = [];
  let y = 0;
  const add = (row, height) => {
    rows.push({ ...row, y, height });
    y += height + GAP;
  };
  for (const label of ['before', 'after']) {
    const side = story.sides[label];
    const length = story.isStep ? plural(side.end, 'step') : duration(side.end);
    add({ type: 'title', side, text: `${label}  ${length}` }, TITLE);
    story.places.forEach((place, device) => add({
      type: 'lane',
      side,
      device,
      text: story.isStep ? place.name : `${place.name}  ${busyText(side, device)}`,
      table: side.runs,
      items: side.lanes[device],
      isSerial: true,
      color: (op) => story.colorOfOp(op),
      colors: palette,
      name: (op) => opName(story, op),
    }, LANE));
    for (const { source, target, rows: items } of side.links) {
      add({
        type: 'link',
        side,
        text: `${story.places[source].name} → ${story.places[target].name}`,
        table: side.sent,
        items,
        isSerial: false,
        color: () => 0,
        colors: () => [css('link')],
        name: (sent) => story.strings[side.sent.name[sent]],
      }, LINK);
    }
    y += 6;
  }
  return rows;
}

function busyText(side, device) {
  const busy = side.lanes[device].reduce((sum, op) => sum + side.runs.length[op], 0);
  return `${Math.round((100 * busy) / Math.max(1, side.end))} %`;
}

function palette() {
  return Array.from({ length: MOST_COLORS + 1 }, (_, i) => css(`kind-${i}`));
}

function opLines(story, side, op) {
  const { runs } = side;
  const lines = [
    opName(story, op),
    `${opKind(story, op)}, step ${grouped(runs.step[op])} on ${story.places[runs.device[op]].name}`,
  ];
  if (!story.isStep) lines.push(spanText(story, runs.start[op], runs.end[op]));
  lines.push(`reads ${shortBytes(story.ops.reads[op])}, writes ${shortBytes(story.ops.writes[op])}`);
  const source = story.ops.source[op];
  if (source !== undefined) lines.push(`time from ${story.strings[source]}`);
  return lines;
}

function sentLines(story, { sent }, row) {
  const maker = sent.maker[row];
  const readers = sent.readers[row].map((op) => opName(story, op));
  return [
    story.strings[sent.name[row]],
    `${exactBytes(sent.bytes[row])} from ${story.places[sent.source[row]].name}`
      + ` to ${story.places[sent.target[row]].name}`,
    spanText(story, sent.start[row], sent.end[row]),
    maker < 0 ? 'a graph input' : `made by ${opName(story, maker)}`,
    `read by ${readers.slice(0, 3).join(', ')}${readers.length > 3 ? ', …' : ''}`,
  ];
}
