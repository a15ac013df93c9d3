// Optional: without it the page shows the same figures. It adds switches to the legend, the value
// under the pointer, one lock lit everywhere, and tables sorted by a column.
(() => {
  'use strict';
  document.documentElement.classList.add('scripted');

  for (const chip of document.querySelectorAll('.chip')) {
    chip.addEventListener('click', () => {
      const shown = chip.getAttribute('aria-pressed') !== 'true';
      chip.setAttribute('aria-pressed', String(shown));
      const hide = chip.dataset.family ? 'hide-' + chip.dataset.family : 'hide-peers';
      chip.closest('.setting').classList.toggle(hide, !shown);
    });
  }

  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);

  const light = (setting, lock) => {
    if ((setting.dataset.lit || '') === (lock || '')) return;
    setting.dataset.lit = lock || '';
    setting.classList.toggle('lit', Boolean(lock));
    for (const one of setting.querySelectorAll('.s[data-lock]')) {
      one.classList.toggle('on', one.dataset.lock === lock);
    }
  };
  const say = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = !text;
    const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
    const top = y - tip.offsetHeight - 12;
    tip.style.left = Math.max(8, left) + 'px';
    tip.style.top = (top < 8 ? y + 18 : top) + 'px';
  };

  // The browser's own slow tip would come on top of ours.
  for (const point of document.querySelectorAll('svg.chart .pt')) {
    const title = point.querySelector('title');
    point.setAttribute('aria-label', title.textContent);
    title.remove();
  }

  for (const chart of document.querySelectorAll('svg.chart')) {
    chart.querySelector(':scope > title').remove();
    const setting = chart.closest('.setting');
    const points = [...chart.querySelectorAll('.pt')];
    const near = (event) => {
      let best = null;
      let least = 44 * 44;
      for (const point of points) {
        const box = point.getBoundingClientRect();
        if (!box.width && !box.height) continue;
        const x = box.x + box.width / 2 - event.clientX;
        const y = box.y + box.height / 2 - event.clientY;
        if (x * x + y * y < least) {
          least = x * x + y * y;
          best = point;
        }
      }
      const tag = event.target.closest('.tag, text.end');
      if (tag) {
        light(setting, tag.closest('.s').dataset.lock);
        say('', 0, 0);
      } else {
        light(setting, best && best.closest('.s').dataset.lock);
        say(best ? best.getAttribute('aria-label') : '', event.clientX, event.clientY);
      }
    };
    chart.addEventListener('pointermove', near);
    chart.addEventListener('pointerdown', near);
    chart.addEventListener('pointerleave', () => {
      light(setting, null);
      say('', 0, 0);
    });
  }
  for (const one of document.querySelectorAll('.mini, tr[data-lock]')) {
    one.addEventListener('pointerenter', () => light(one.closest('.setting'), one.dataset.lock));
    one.addEventListener('pointerleave', () => light(one.closest('.setting'), null));
  }

  for (const table of document.querySelectorAll('.sortable')) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement('button');
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const up = head.getAttribute('aria-sort') === 'descending'
          || (column < 2 && head.getAttribute('aria-sort') !== 'ascending');
        for (const other of heads) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
        const value = (row) => {
          const cell = row.cells[column];
          return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
        };
        // What was not measured stays last, whichever way the column is sorted.
        const empty = (row) => row.cells[column].classList.contains('none');
        const rows = [...body.rows].sort((a, b) => {
          if (empty(a) || empty(b)) return empty(a) - empty(b);
          const [x, y] = [value(a), value(b)];
          const order = typeof x === 'string' ? x.localeCompare(y) : x - y || 0;
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
  }

  for (const link of document.querySelectorAll('.overview a')) {
    link.addEventListener('click', () => {
      const part = document.querySelector(link.hash).closest('details');
      if (part) part.open = true;
    });
  }

  addEventListener('beforeprint', () => {
    for (const part of document.querySelectorAll('details')) part.open = true;
  });
})();
