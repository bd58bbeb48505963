// Live memory of one device over time: before and after, the bound, and the capacity.

const TALLEST_LIMIT = 1.5; // a capacity higher than this many peaks is said, not drawn

function memoryPainter(story, device, onPick) {
  const place = story.places[device];
  const sides = ['before', 'after'].map((label) => story.sides[label]);
  const peak = Math.max(1, ...sides.map((side) => side.curves[device].peak));
  const room = roomFor(story, device);
  const isLimitDrawn = room !== null && room <= TALLEST_LIMIT * peak;
  const top = 1.08 * Math.max(peak, story.peak_bound <= TALLEST_LIMIT * peak ? story.peak_bound : 0,
    isLimitDrawn ? room : 0);
  const few = story.places.length <= 2;
  const y = (chart, bytes) => chart.bottom() - (bytes / top) * (chart.bottom() - 8);

  function draw(chart, pen) {
    for (const tick of byteTicks(top)) {
      const height = Math.round(y(chart, tick)) + 0.5;
      line(pen, css('grid'), chart.left, height, chart.width - RIGHT, height);
      pen.fillStyle = css('faint');
      const label = shortBytes(tick);
      pen.fillText(label, chart.left - 8 - pen.measureText(label).width, Math.max(8, height));
    }
    pen.save();
    pen.beginPath();
    pen.rect(chart.left, 0, chart.width - chart.left - RIGHT, chart.bottom() + 1);
    pen.clip();
    for (const side of sides) drawCurve(chart, pen, side);
    pen.restore();
    if (story.peak_bound > 0 && story.peak_bound <= top) {
      level(chart, pen, story.peak_bound, 'bound', 'lower bound', [5, 4]);
    }
    if (isLimitDrawn) level(chart, pen, room, 'limit', 'capacity', []);
  }

  function level(chart, pen, bytes, color, label, dash) {
    const height = Math.round(y(chart, bytes)) + 0.5;
    line(pen, css(color), chart.left, height, chart.width - RIGHT, height, dash);
    const text = `${label} ${shortBytes(bytes)}`;
    const width = pen.measureText(text).width;
    pen.fillStyle = css('panel');
    pen.globalAlpha = 0.85;
    pen.fillRect(chart.width - RIGHT - width - 10, height + 3, width + 8, 15);
    pen.globalAlpha = 1;
    pen.fillStyle = css(color);
    pen.fillText(text, chart.width - RIGHT - width - 6, height + 11);
  }

  // A column of pixels shows the range of its levels, so that no peak gets lost.
  function drawCurve(chart, pen, side) {
    const { times, levels } = side.curves[device];
    const first = Math.max(0, lastAt(times.length, (i) => times[i], chart.view.from));
    const outline = new Path2D();
    const floor = chart.bottom();
    let last = y(chart, levels[first]);
    outline.moveTo(chart.x(Math.max(times[first], chart.view.from)), last);
    let column = -1;
    let [low, high] = [last, last];
    let x = 0;
    const flush = () => {
      outline.lineTo(x, high);
      outline.lineTo(x, low);
      outline.lineTo(x, last);
    };
    for (let i = first + 1; i < times.length && times[i] <= chart.view.to; i += 1) {
      const here = chart.x(times[i]);
      const height = y(chart, levels[i]);
      if (Math.floor(here) !== column) {
        if (column >= 0) flush();
        column = Math.floor(here);
        x = here;
        outline.lineTo(x, last);
        [low, high] = [height, height];
      }
      low = Math.max(low, height);
      high = Math.min(high, height);
      last = height;
    }
    if (column >= 0) flush();
    const end = chart.x(Math.min(side.end, chart.view.to));
    outline.lineTo(end, last);
    pen.strokeStyle = css(side.label);
    pen.lineWidth = side.label === 'after' ? 1.75 : 1.25;
    pen.stroke(outline);
    pen.lineWidth = 1;
    outline.lineTo(end, floor);
    outline.lineTo(chart.x(Math.max(0, chart.view.from)), floor);
    pen.globalAlpha = side.label === 'after' ? 0.2 : 0.12;
    pen.fillStyle = css(side.label);
    pen.fill(outline);
    pen.globalAlpha = 1;
    drawPeak(chart, pen, side);
  }

  function drawPeak(chart, pen, side) {
    const { peak: bytes, peakTime } = side.curves[device];
    if (bytes === 0 || peakTime < chart.view.from || peakTime > chart.view.to) return;
    pen.fillStyle = css(side.label);
    pen.beginPath();
    pen.arc(chart.x(peakTime), y(chart, bytes), 3.5, 0, 2 * Math.PI);
    pen.fill();
  }

  function lines(time) {
    const found = [momentText(story, time)];
    for (const side of sides) {
      if (time >= side.end) {
        found.push(`${side.label}: finished`);
        continue;
      }
      const op = opAt(side, device, time);
      found.push(`${side.label}: ${exactBytes(levelAt(side.curves[device], time))}`);
      found.push(op < 0 ? '  idle' : `  runs ${opName(story, op)} (${opKind(story, op)})`);
      const held = heldAt(side, device, time);
      for (const row of held.slice(0, 4)) {
        found.push(`  ${shortBytes(side.held.bytes[row])}  ${heldName(story, side, row)}`);
      }
      if (held.length > 4) found.push(`  and ${held.length - 4} more`);
    }
    return found;
  }

  return {
    name: `Live memory of ${place.name}`,
    height: () => (few ? 190 : story.places.length <= 4 ? 140 : 100),
    draw,
    hover: (chart, x) => lines(chart.time(x)),
    say: lines,
    pick: (chart, x) => onPick(device, chart.time(x)),
    pickAt: (time) => onPick(device, time),
    peakTime: (label) => story.sides[label].curves[device].peakTime,
    // Moments at which something changes: where the arrow keys go.
    stops: () => story.sides.after.curves[device].times,
  };
}

// Bytes that parameters and state leave for what is live, or null without a limit.
function roomFor(story, device) {
  const limit = story.places[device].memory_bytes;
  if (limit === null || !story.capacity_counts_live) return null;
  return Math.max(0, limit - story.sides.after.resident_bytes[device]);
}
