// Where buffers lie in the arena of a device (up) and when (to the right).


function layoutPainter(story, device, label) {
  const side = story.sides[label];
  const { held } = side;
  const top = 1.04 * Math.max(1, ...['before', 'after'].map(
    (name) => story.sides[name].arena_bytes[device],
  ));
  const rows = side.heldOn[device].filter((row) => held.bytes[row] + held.spare[row] > 0);
  const byColor = grouping(rows.map((row) => colorOf(row)), MOST_COLORS + 1);
  let hovered = -1;

  function colorOf(row) {
    return held.name[row] < 0 ? OTHER : story.colorOfOp(held.maker[row]);
  }

  function box(chart, row) {
    const scale = (chart.bottom() - 6) / top;
    const x = chart.x(held.start[row]);
    const bytes = held.bytes[row] + held.spare[row];
    return {
      x,
      y: chart.bottom() - (held.offset[row] + bytes) * scale,
      width: Math.max(1, chart.x(held.end[row]) - x),
      height: Math.max(1, bytes * scale),
    };
  }

  function draw(chart, pen) {
    for (const tick of byteTicks(top)) {
      const y = Math.round(chart.bottom() - (tick / top) * (chart.bottom() - 6)) + 0.5;
      line(pen, css('grid'), chart.left, y, chart.width - RIGHT, y);
      pen.fillStyle = css('faint');
      const text = shortBytes(tick);
      pen.fillText(text, chart.left - 8 - pen.measureText(text).width, Math.max(8, y));
    }
    pen.save();
    pen.beginPath();
    pen.rect(chart.left, 0, chart.width - chart.left - RIGHT, chart.bottom());
    pen.clip();
    const colors = palette();
    const { from, to } = chart.view;
    byColor.forEach((positions, color) => {
      pen.fillStyle = colors[color];
      for (const position of positions) {
        const row = rows[position];
        if (held.end[row] < from || held.start[row] > to) continue;
        const { x, y, width, height } = box(chart, row);
        // A seam between neighbors, where there is room for one.
        pen.fillRect(x, y, width > 4 ? width - 1 : width, height > 4 ? height - 1 : height);
      }
    });
    pen.restore();
    const arena = side.arena_bytes[device];
    const y = Math.round(chart.bottom() - (arena / top) * (chart.bottom() - 6)) - 0.5;
    line(pen, css(label), chart.left, y, chart.width - RIGHT, y, [2, 2]);
  }

  function find(chart, x, y) {
    if (x < chart.left) return -1;
    const time = chart.time(x);
    const offset = ((chart.bottom() - y) / (chart.bottom() - 6)) * top;
    return rows.find((row) => held.start[row] <= time && time < held.end[row]
      && held.offset[row] <= offset
      && offset < held.offset[row] + held.bytes[row] + held.spare[row]) ?? -1;
  }

  function overlay(chart, pen) {
    if (hovered < 0) return;
    const { x, y, width, height } = box(chart, hovered);
    const left = Math.max(x, chart.left);
    pen.strokeStyle = css('ink');
    pen.lineWidth = 2;
    pen.strokeRect(left, y, Math.max(2, Math.min(x + width, chart.width - RIGHT) - left), height);
    pen.lineWidth = 1;
  }

  return {
    name: `Memory layout of ${story.places[device].name} ${label}`,
    height: () => (story.places.length <= 2 ? 260 : 180),
    draw,
    overlay,
    hover: (chart, x, y) => {
      hovered = find(chart, x, y);
      return hovered < 0 ? null : heldLines(story, side, hovered);
    },
    leave: () => {
      hovered = -1;
    },
    say: (time) => {
      const found = heldAt(side, device, time);
      const first = found.slice(0, 5).map(
        (row) => `${heldName(story, side, row)} at byte ${grouped(held.offset[row])}`,
      );
      return [momentText(story, time), plural(found.length, 'buffer'), ...first];
    },
    peakTime: (name) => story.sides[name].curves[device].peakTime,
    stops: () => side.curves[device].times,
  };
}

function heldLines(story, side, row) {
  const { held } = side;
  const begin = held.offset[row];
  const end = begin + held.bytes[row] + held.spare[row];
  const lines = [
    heldName(story, side, row),
    `${exactBytes(held.bytes[row])} at bytes [${grouped(begin)}, ${grouped(end)})`,
    spanText(story, held.start[row], held.end[row]),
  ];
  if (held.type[row] >= 0) lines.push(story.strings[held.type[row]]);
  if (held.name[row] >= 0) {
    const maker = held.maker[row];
    lines.push(maker < 0 ? 'a graph input' : `made by ${opName(story, maker)}`);
  }
  return lines;
}
