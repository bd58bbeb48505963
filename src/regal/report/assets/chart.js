// A canvas with two layers (picture and cursor), a time axis, pointer, and keys.

const WIDE_GUTTER = 116; // for the names of lanes and sizes
const NARROW_GUTTER = 74;
const AXIS = 22;
const RIGHT = 12;
const FONT = '12px system-ui, sans-serif';

const colors = new Map();

// The color of a name in style.css under the theme of the moment.
function css(name) {
  if (!colors.has(name)) {
    const probe = document.createElement('span');
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    colors.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return colors.get(name);
}

// Puts a chart in `host`. The painter says:
//   height(), draw(chart, context), overlay(chart, context),
//   hover(chart, x, y) -> lines of text or null, name, and pick(chart, x, y) for a click.
function createChart(host, story, view, painter) {
  const picture = document.createElement('canvas');
  const cursor = document.createElement('canvas');
  picture.setAttribute('aria-hidden', 'true');
  cursor.tabIndex = 0;
  cursor.setAttribute('role', 'group');
  cursor.setAttribute('aria-roledescription', 'chart');
  cursor.setAttribute('aria-label', `${painter.name}. ${KEYS}`);
  host.replaceChildren(picture, cursor);
  host.classList.add('alive');

  const chart = { host, story, view, painter, width: 0, height: 0, left: WIDE_GUTTER, mouse: null };
  let isVisible = true;
  let isStale = true;

  chart.x = (time) =>
    chart.left + ((time - view.from) / view.span()) * (chart.width - chart.left - RIGHT);
  chart.time = (x) =>
    view.from + ((x - chart.left) / (chart.width - chart.left - RIGHT)) * view.span();
  chart.bottom = () => chart.height - AXIS;

  function context(canvas) {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(chart.width * scale), Math.round(chart.height * scale)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.height = `${chart.height}px`;
    }
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, chart.width, chart.height);
    pen.font = FONT;
    pen.textBaseline = 'middle';
    return pen;
  }

  chart.draw = (all) => {
    isStale ||= all;
    if (!isVisible || chart.width === 0) return;
    if (isStale) {
      isStale = false;
      const pen = context(picture);
      drawAxis(chart, pen);
      painter.draw(chart, pen);
    }
    const pen = context(cursor);
    if (view.cursor !== null) {
      const x = Math.round(chart.x(view.cursor)) + 0.5;
      if (x >= chart.left && x <= chart.width - RIGHT) {
        line(pen, css('cursor'), x, 0, x, chart.bottom());
      }
    }
    painter.overlay?.(chart, pen);
  };

  chart.measure = () => {
    chart.width = host.clientWidth;
    chart.height = painter.height();
    chart.left = chart.width < 620 ? NARROW_GUTTER : WIDE_GUTTER;
    host.style.height = `${chart.height}px`;
    isStale = true;
    chart.draw(true);
  };

  view.listen(chart.draw);
  new ResizeObserver(() => {
    if (!isPrinting) chart.measure();
  }).observe(host);
  new IntersectionObserver(
    (entries) => {
      isVisible = entries[entries.length - 1].isIntersecting;
      chart.draw(false);
    },
    { rootMargin: '200px' },
  ).observe(host);
  // On paper the picture is only scaled: a new size would need a frame that never comes.
  let isPrinting = false;
  window.addEventListener('beforeprint', () => {
    isPrinting = true;
    isVisible = true;
    chart.draw(true);
  });
  window.addEventListener('afterprint', () => {
    isPrinting = false;
    chart.measure();
  });
  listenToPointer(chart, cursor);
  listenToKeys(chart, cursor);
  chart.measure();
  return chart;
}

function drawAxis(chart, pen) {
  const { story, view } = chart;
  const count = Math.max(2, Math.floor((chart.width - chart.left) / 110));
  const { ticks, step } = roundTicks(view.from, view.to, count, story.isStep);
  pen.fillStyle = css('faint');
  for (const tick of ticks) {
    const x = Math.round(chart.x(tick)) + 0.5;
    line(pen, css('grid'), x, 0, x, chart.bottom() + 4);
    const label = story.isStep ? grouped(tick) : timeLabel(tick, step, view.to);
    const width = pen.measureText(label).width;
    if (x + width / 2 < chart.width) pen.fillText(label, x - width / 2, chart.bottom() + 13);
  }
  if (story.isStep) {
    pen.fillText('step', 4, chart.bottom() + 13);
  }
}

function line(pen, color, x0, y0, x1, y1, dash = []) {
  pen.strokeStyle = color;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
  pen.setLineDash([]);
}

// Text that ends with an ellipsis where there is no room.
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let [low, high] = [0, Math.min(text.length, 160)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}…` : '';
}
