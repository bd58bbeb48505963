// Zoom, search for ops, legends: what stands above the charts of a story.

const KEYS = 'Keys: left and right move the cursor, plus and minus zoom, comma and period pan, '
  + '0 shows all, p and b go to the peak after and before, Enter picks what is under the cursor.';

function createToolbar(root, story, view) {
  const bar = root.querySelector('.toolbar');
  const range = node('output');
  const search = node('input');
  search.type = 'search';
  search.placeholder = 'Find an op by its name or kind';
  search.setAttribute('aria-label', search.placeholder);
  const found = node('output');
  const button = (text, label, act) => {
    const made = node('button', text);
    made.type = 'button';
    made.setAttribute('aria-label', label);
    made.title = label;
    made.addEventListener('click', act);
    return made;
  };
  const zoom = node('span');
  zoom.className = 'group';
  zoom.append(
    button('−', 'Zoom out', () => view.zoom(2)),
    button('+', 'Zoom in', () => view.zoom(0.5)),
    button('◀', 'Earlier', () => view.pan(-view.span() / 2)),
    button('▶', 'Later', () => view.pan(view.span() / 2)),
    button('Show all', 'Show all', () => view.reset()),
  );
  const hint = node('span', 'Drag to zoom, Shift-drag to pan, Ctrl-wheel, double-click for all');
  hint.className = 'hint';
  bar.append(zoom, range, search, found, hint);
  bar.hidden = false;

  const tell = () => {
    range.textContent = story.isStep
      ? `steps ${grouped(Math.floor(view.from))}–${grouped(Math.ceil(view.to))}`
      : `${duration(view.from)} – ${duration(view.to)}`;
  };
  view.listen(tell);
  tell();
  listenToSearch(search, found, story, view);
  fillLegends(root, story);
}

function listenToSearch(search, found, story, view) {
  let hits = [];
  let at = -1;
  const show = () => {
    if (hits.length === 0) {
      found.textContent = search.value ? 'none' : '';
      view.select(-1);
      return;
    }
    const op = hits[at];
    const { runs } = story.sides.after;
    found.textContent = `${at + 1} of ${grouped(hits.length)}: ${opName(story, op)}`;
    view.select(op);
    view.reveal((runs.start[op] + runs.end[op]) / 2);
  };
  search.addEventListener('input', () => {
    const text = search.value.toLowerCase();
    const { start } = story.sides.after.runs;
    hits = text === '' ? [] : [...story.ops.name.keys()]
      .filter((op) => opName(story, op).toLowerCase().includes(text)
        || opKind(story, op).toLowerCase().includes(text))
      .sort((a, b) => start[a] - start[b]);
    at = 0;
    show();
  });
  search.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || hits.length === 0) return;
    at = (at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    show();
  });
}

function fillLegends(root, story) {
  const limits = story.places.some((_, device) => roomFor(story, device) !== null);
  const bound = `proven lower bound${story.places.length > 1 ? ' of the fullest device' : ''}`;
  const keys = [['before', 'before'], ['after', 'after'], ['bound', bound]];
  if (limits) keys.push(['limit', 'capacity, without parameters and state']);
  fill(root.querySelector('.memory-legend'), keys);
  const kinds = [...story.kindColor].map(
    ([kind, color]) => [`kind-${color}`, story.strings[kind]],
  );
  if (new Set(story.ops.kind).size > kinds.length) kinds.push([`kind-${OTHER}`, 'other']);
  if (story.sides.before.links.length + story.sides.after.links.length > 0) {
    kinds.push(['link', 'transfer']);
  }
  fill(root.querySelector('.kind-legend'), kinds);
}

function fill(list, keys) {
  for (const [color, text] of keys) {
    const item = node('li');
    const swatch = node('span');
    swatch.className = `swatch ${color}`;
    item.append(swatch, text);
    list.append(item);
  }
}
