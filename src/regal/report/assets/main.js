// Puts the page together.

const root = {
  result: embedded('result'),
  stories: embedded('stories'),
  comparison: embedded('comparison'),
};

// Every number in the markup says where in the JSON it comes from; it is filled in from there.
function fillNumbers() {
  for (const element of document.querySelectorAll('data[data-from]')) {
    const value = element.dataset.from.split('.').reduce((part, key) => part[key], root);
    element.value = String(value);
    element.textContent = FORMS[element.dataset.form](value);
  }
}

function showStory(box, data) {
  const story = prepared(data);
  const view = createView(story.end);
  createToolbar(box, story, view);
  const painters = {
    memory: ({ device }) => memoryPainter(story, Number(device), createMoment(box, story)),
    timeline: () => timelinePainter(story, view.select),
    layout: ({ device, side }) => layoutPainter(story, Number(device), side),
  };
  for (const host of box.querySelectorAll('.chart')) {
    createChart(host, story, view, painters[host.dataset.chart](host.dataset));
  }
  return view;
}

function listenToTheme(views) {
  const button = document.getElementById('theme');
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const page = document.documentElement;
  const isDark = () => (page.dataset.theme ? page.dataset.theme === 'dark' : dark.matches);
  const redraw = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    colors.clear();
    for (const view of views) view.redraw();
  };
  button.addEventListener('click', () => {
    page.dataset.theme = isDark() ? 'light' : 'dark';
    redraw();
  });
  dark.addEventListener('change', redraw);
  // Paper is white; charts draw themselves again after this.
  let chosen;
  window.addEventListener('beforeprint', () => {
    chosen = page.dataset.theme;
    page.dataset.theme = 'light';
    colors.clear();
  }, { capture: true });
  window.addEventListener('afterprint', () => {
    if (chosen) page.dataset.theme = chosen;
    else delete page.dataset.theme;
    redraw();
  });
  button.hidden = false;
  redraw();
}

function listenToData() {
  const box = document.getElementById('json');
  box.addEventListener('toggle', () => {
    box.querySelector('pre').textContent = JSON.stringify(root.result, null, 2);
  });
}

fillNumbers();
listenToTheme(
  [...document.querySelectorAll('.story')].map(
    (box) => showStory(box, root.stories[Number(box.dataset.story)]),
  ),
);
listenToData();
