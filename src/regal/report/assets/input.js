// Pointer and keys on a chart.

const CLICK = 4; // pixels that a hand may shake during a click

function listenToPointer(chart, canvas) {
  const { view, painter } = chart;
  let drag = null; // {x, time, isPan, from, to}
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (drag?.isPan) {
      const time = ((drag.x - x) / (chart.width - chart.left - RIGHT)) * (drag.to - drag.from);
      view.show(drag.from + time, drag.to + time);
      return;
    }
    if (drag && Math.abs(x - drag.x) > CLICK) markRange(chart, drag.x, x);
    view.point(x < chart.left ? null : chart.time(x));
    const lines = x < chart.left ? null : painter.hover(chart, x, y);
    showTip(lines, event.clientX, event.clientY);
    view.point(view.cursor);
  });
  canvas.addEventListener('pointerleave', () => {
    painter.leave?.();
    showTip(null);
    if (!drag) view.point(null);
  });
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const [x] = place(event);
    drag = { x, time: chart.time(x), isPan: event.shiftKey, from: view.from, to: view.to };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', (event) => {
    if (!drag) return;
    const [x, y] = place(event);
    const { x: start, time, isPan } = drag;
    drag = null;
    markRange(chart, 0, 0);
    if (Math.abs(x - start) <= CLICK) painter.pick?.(chart, x, y);
    else if (!isPan) view.show(Math.min(time, chart.time(x)), Math.max(time, chart.time(x)));
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
    markRange(chart, 0, 0);
  });
  canvas.addEventListener('dblclick', () => view.reset());
  // Only with Ctrl, or sideways: the plain wheel scrolls the page.
  canvas.addEventListener('wheel', (event) => {
    const [x] = place(event);
    if (event.ctrlKey || event.metaKey) view.zoom(1.002 ** event.deltaY, chart.time(x));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.pan((event.deltaX / chart.width) * view.span());
    } else return;
    event.preventDefault();
  }, { passive: false });
}

function listenToKeys(chart, canvas) {
  const { story, view, painter } = chart;
  const acts = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    '+': () => view.zoom(0.5),
    '=': () => view.zoom(0.5),
    '-': () => view.zoom(2),
    ',': () => view.pan(-view.span() / 4),
    '.': () => view.pan(view.span() / 4),
    0: () => view.reset(),
    Home: () => move(0),
    End: () => move(story.sides.after.end - (story.isStep ? 1 : 0)),
    p: () => moveTo(painter.peakTime?.('after')),
    b: () => moveTo(painter.peakTime?.('before')),
    Enter: () => view.cursor !== null && painter.pickAt?.(view.cursor),
    Escape: () => view.point(null),
  };

  function step(direction) {
    const stops = painter.stops();
    const here = view.cursor ?? view.from;
    const at = lastAt(stops.length, (i) => stops[i], here);
    const next = direction > 0 ? at + 1 : at >= 0 && stops[at] === here ? at - 1 : at;
    if (next >= 0 && next < stops.length) move(stops[next]);
  }

  function moveTo(time) {
    if (time !== undefined) move(time);
  }

  function move(time) {
    view.reveal(time);
    view.point(time);
    const lines = painter.say(time);
    document.getElementById('spoken').textContent = lines.join(', ');
    const box = canvas.getBoundingClientRect();
    showTip(lines, box.left + chart.x(time), box.top + chart.height / 2);
  }

  canvas.addEventListener('keydown', (event) => {
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  canvas.addEventListener('blur', () => showTip(null));
}

// Shades what a drag would zoom to.
function markRange(chart, x0, x1) {
  let shade = chart.host.querySelector('.shade');
  if (!shade) {
    shade = node('div');
    shade.className = 'shade';
    chart.host.append(shade);
  }
  shade.hidden = x0 === x1;
  shade.style.left = `${Math.max(chart.left, Math.min(x0, x1))}px`;
  shade.style.width = `${Math.abs(x1 - x0)}px`;
}

// Lines beside the pointer; null hides them. The first one is the title.
function showTip(lines, x = 0, y = 0) {
  const tip = document.getElementById('tip');
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((text) => node('div', text)));
  const { width, height } = tip.getBoundingClientRect();
  const left = x + 16 + width > window.innerWidth ? x - 16 - width : x + 16;
  const top = y + 16 + height > window.innerHeight ? y - 16 - height : y + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}
