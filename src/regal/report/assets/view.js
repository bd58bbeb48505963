// The window of time that all charts of a story show, and the cursor in it.

const MOST_ZOOM = 1e7;

function createView(end) {
  const listeners = [];
  const view = { end, from: 0, to: end, cursor: null, selected: -1 };
  let isWaiting = false;
  let needsFrame = false;

  // Charts draw at most once per frame; "frame" says that more than the cursor has changed.
  function changed(frame) {
    needsFrame ||= frame;
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      const all = needsFrame;
      needsFrame = false;
      for (const listener of listeners) listener(all);
    });
  }

  view.listen = (listener) => listeners.push(listener);
  view.redraw = () => changed(true);
  view.span = () => view.to - view.from;
  view.isZoomed = () => view.from > 0 || view.to < view.end;

  view.show = (from, to) => {
    const span = Math.min(view.end, Math.max(to - from, view.end / MOST_ZOOM));
    view.from = Math.min(Math.max(0, from), view.end - span);
    view.to = view.from + span;
    changed(true);
  };
  // `factor` below 1 shows less time; what lies at `around` stays where it is.
  view.zoom = (factor, around = view.cursor ?? (view.from + view.to) / 2) => {
    const span = Math.min(view.end, view.span() * factor);
    const share = (around - view.from) / view.span();
    view.show(around - share * span, around + (1 - share) * span);
  };
  view.pan = (time) => view.show(view.from + time, view.to + time);
  view.reset = () => view.show(0, view.end);

  view.point = (time) => {
    view.cursor = time === null ? null : Math.min(Math.max(0, time), view.end);
    changed(false);
  };
  view.reveal = (time) => {
    if (time < view.from || time > view.to) {
      view.show(time - view.span() / 2, time + view.span() / 2);
    }
  };
  view.select = (op) => {
    view.selected = op;
    changed(false);
  };
  return view;
}

// Round times between two ends, about `count` of them.
function roundTicks(from, to, count, isWhole) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((f) => f * power >= rough);
  const step = isWhole ? Math.max(1, Math.round(factor * power)) : factor * power;
  const ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) ticks.push(tick);
  return { ticks, step };
}

// Times as texts with one unit, with as many digits as tell the ticks apart.
function timeLabel(tick, step, largest) {
  const [unit, name] = TIME_UNITS.find(([u]) => largest >= u) ?? [1, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(tick / unit).toFixed(Math.min(digits, 9))} ${name}`;
}

// Multiples of a power of two that reach `top` in at most five steps.
function byteTicks(top) {
  let step = 1;
  while (top / step > 5) step *= 2;
  const ticks = [];
  for (let tick = 0; tick <= top; tick += step) ticks.push(tick);
  return ticks;
}
