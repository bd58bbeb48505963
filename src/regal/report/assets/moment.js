// What is in memory at the moment that was picked, for both plans: a table for each.

const MOST_LISTED = 200;

function createMoment(root, story) {
  const box = root.querySelector('.moment');
  return (device, time) => {
    if (time < 0 || time > story.end) return;
    box.hidden = false;
    const title = node('h3', `In memory of ${story.places[device].name}, `
      + (story.isStep ? '' : 'at ') + momentText(story, time));
    const close = node('button', 'Close');
    close.type = 'button';
    close.addEventListener('click', () => {
      box.hidden = true;
    });
    const pair = node('div');
    pair.className = 'pair';
    for (const label of ['before', 'after']) pair.append(listing(story, label, device, time));
    const head = node('div');
    head.className = 'moment-head';
    head.append(title, close);
    box.replaceChildren(head, pair);
  };
}

function listing(story, label, device, time) {
  const side = story.sides[label];
  const rows = time < side.end ? heldAt(side, device, time) : [];
  const total = rows.reduce((sum, row) => sum + side.held.bytes[row], 0);
  const caption = node('p');
  caption.className = `side ${label}`;
  caption.append(node('b', label), `: ${exactBytes(total)} in ${plural(rows.length, 'buffer')}`);
  const op = opAt(side, device, time);
  if (op >= 0) caption.append(`, while ${opName(story, op)} runs`);
  const table = node('table');
  const body = node('tbody');
  const head = node('tr');
  for (const text of ['tensor', 'bytes', 'made by', 'lives']) {
    const cell = node('th', text);
    cell.scope = 'col';
    if (text === 'bytes' || text === 'lives') cell.className = 'number';
    head.append(cell);
  }
  for (const row of rows.slice(0, MOST_LISTED)) body.append(heldRow(story, side, row));
  if (rows.length > MOST_LISTED) {
    const line = node('tr');
    line.append(node('td', `${grouped(rows.length - MOST_LISTED)} more`));
    body.append(line);
  }
  const top = node('thead');
  top.append(head);
  table.append(top, body);
  const scroll = node('div');
  scroll.className = 'scroll';
  scroll.append(table);
  const part = node('div');
  part.append(caption, scroll);
  return part;
}

function heldRow(story, side, row) {
  const { held } = side;
  const name = node('td');
  const main = node('span', heldName(story, side, row));
  main.className = 'name';
  const type = node('span', held.type[row] < 0 ? '' : story.strings[held.type[row]]);
  type.className = 'type';
  name.append(main, type);
  const bytes = node('td', grouped(held.bytes[row]));
  bytes.className = 'number';
  const maker = held.maker[row];
  const made = node('td');
  const madeBy = node('span', maker < 0 ? 'graph input' : opName(story, maker));
  madeBy.className = 'name';
  made.append(madeBy);
  const lives = node('td', spanText(story, held.start[row], held.end[row]));
  lives.className = 'number';
  const line = node('tr');
  line.append(name, bytes, made, lives);
  return line;
}

function node(name, text = '') {
  const found = document.createElement(name);
  found.textContent = text;
  return found;
}
