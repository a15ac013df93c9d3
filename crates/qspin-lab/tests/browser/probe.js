// Put into a page by the browser test: measures what is on the screen and says it as JSON.
addEventListener('load', () => {
  'use strict';
  const found = { charts: [], waits: [], covered: [], outside: [], contrast: [] };
  const seen = (node) => node.getClientRects().length > 0;
  const middle = (node) => {
    const box = node.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  // From a value to a pixel, by the first and the last labelled tick of the axis alone.
  const ruler = (ticks, log) => {
    const scale = (value) => (log ? Math.log(value) : value);
    const [from, to] = [ticks[0], ticks[ticks.length - 1]];
    const slope = (to.at - from.at) / (scale(to.value) - scale(from.value));
    return (value) => from.at + (scale(value) - scale(from.value)) * slope;
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };

  for (const svg of [...document.querySelectorAll('svg.lines')].filter(seen)) {
    const frame = svg.getBoundingClientRect();
    const log = svg.querySelector('text.axis').textContent.includes('logarithmic');
    const rows = [...svg.querySelectorAll('[data-tick-y]')].map((tick) => ({
      value: Number(tick.dataset.tickY), at: middle(tick)[1],
    }));
    const columns = [...svg.querySelectorAll('[data-tick-x]')].map((tick) => ({
      value: Number(tick.dataset.tickX), at: middle(tick)[0],
    }));
    const place = ruler(rows, log);
    const points = [...svg.querySelectorAll('.pt')].map((point) => {
      const [x, y] = middle(point);
      const column = columns.find((tick) => tick.value === Number(point.dataset.threads));
      return {
        lock: point.closest('.s').dataset.lock,
        threads: Number(point.dataset.threads),
        value: Number(point.dataset.value),
        dx: Math.abs(x - column.at),
        dy: Math.abs(y - place(Number(point.dataset.value))),
        y,
      };
    });
    const border = svg.querySelector('line.cpus');
    const over = svg.querySelector('rect.over');
    found.charts.push({
      title: svg.getAttribute('class') + ' ' + svg.querySelector('text.axis').textContent,
      log,
      points,
      width: frame.width,
      border: border && { room: Number(border.dataset.room), x: middle(border)[0], columns },
      over: over && [over.getBoundingClientRect().left, over.getBoundingClientRect().right],
    });
  }

  for (const svg of [...document.querySelectorAll('svg.waits.chart')].filter(seen)) {
    const ticks = [...svg.querySelectorAll('[data-tick-x]')].map((tick) => ({
      value: Number(tick.dataset.tickX), at: middle(tick)[0],
    }));
    const place = ruler(ticks, true);
    found.waits.push([...svg.querySelectorAll('.pt')].map((point) => ({
      lock: point.closest('.s').dataset.lock,
      what: point.dataset.what,
      value: Number(point.dataset.value),
      dx: Math.abs(middle(point)[0] - place(Math.max(1, Number(point.dataset.value)))),
      y: middle(point)[1],
    })));
  }

  for (const svg of [...document.querySelectorAll('svg.chart')].filter(seen)) {
    const frame = svg.getBoundingClientRect();
    const words = [...svg.querySelectorAll('text')].filter(seen)
      .map((node) => ({ text: node.textContent, box: node.getBoundingClientRect() }));
    for (const { text, box } of words) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.outside.push(text);
    }
    const ends = [...svg.querySelectorAll('text.end')]
      .map((node) => ({ text: node.textContent, y: middle(node)[1] }))
      .sort((a, b) => a.y - b.y);
    const size = parseFloat(getComputedStyle(svg.querySelector('text.end')).fontSize)
      * frame.width / svg.viewBox.baseVal.width;
    for (let i = 1; i < ends.length; i += 1) {
      // Capitals and digits are 0.72 of the font's size high: less apart, and letters touch.
      if (ends[i].y - ends[i - 1].y < size * 0.72) found.covered.push([ends[i - 1].text, ends[i].text]);
    }
  }

  const ground = getComputedStyle(document.querySelector('.hero')).backgroundColor;
  for (const node of document.querySelectorAll('svg.lines text.end')) {
    found.contrast.push(contrast(getComputedStyle(node).fill, ground));
  }
  for (const query of ['.answer', '.setting-name', '.case .lock', '.alert', 'p.sub', 'td', '.chip']) {
    const node = document.querySelector(query);
    if (node) found.contrast.push(contrast(getComputedStyle(node).color, ground));
  }
  found.ground = getComputedStyle(document.body).backgroundColor;
  found.sideways = document.documentElement.scrollWidth - innerWidth;
  found.inner = innerWidth;

  // The switches, the tip and the sorting.
  const shown = (lock) => [...document.querySelectorAll('svg.lines .s')]
    .filter((one) => one.dataset.lock === lock && one.querySelector('.line') && seen(one)).length;
  const chip = document.querySelector('[data-family="f-queue"]');
  found.switched = [shown('native')];
  chip.click();
  found.switched.push(shown('native'), shown('std'));
  chip.click();
  found.switched.push(shown('native'));

  const chart = [...document.querySelectorAll('svg.lines')].find(seen);
  const last = [...chart.querySelectorAll('[data-lock="native"] .pt')].pop();
  last.scrollIntoView();
  const [clientX, clientY] = middle(last);
  chart.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, bubbles: true }));
  found.tip = document.querySelector('.tip').textContent;
  found.lit = [...new Set([...document.querySelectorAll('.s.on')].map((one) => one.dataset.lock))];
  chart.dispatchEvent(new PointerEvent('pointerleave'));

  const table = document.querySelector('.sortable');
  table.tHead.rows[0].cells[2].querySelector('button').click();
  found.sorted = [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.v));

  const say = JSON.stringify(found);
  if (parent !== window) {
    parent.postMessage(say, '*');
  } else {
    const node = document.createElement('pre');
    node.id = 'found';
    node.textContent = say;
    document.body.append(node);
  }
});
