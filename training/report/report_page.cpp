#include "training/report/report_page.h"

namespace caldera::report_page {

const char* const kStyle = R"css(
:root{color-scheme:light dark;--page:#f5f7fa;--panel:#fff;--ink:#1c2530;--soft:#5c6876;--line:#dde3ea;
--a:#4f86e8;--b:#d64d78;--c:#2f9e6e}
@media(prefers-color-scheme:dark){:root{--page:#0d1117;--panel:#12171e;--ink:#dde4ec;--soft:#93a0ae;--line:#28313b;
--a:#6d9df0;--b:#e26d92;--c:#48b487}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1320px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:22px;margin:0 0 2px;font-weight:650;overflow-wrap:anywhere}
h2{font-size:15px;margin:0;font-weight:650}
p{margin:0}.soft{color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:10px;margin-top:18px}
.card,.chart,.table{background:var(--panel);border:1px solid var(--line);border-radius:10px}
.card{padding:10px 14px}
.card b{display:block;font-size:20px;font-weight:650;font-variant-numeric:tabular-nums;white-space:nowrap}
.card span{color:var(--soft);font-size:12px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:14px;margin-top:14px}
.chart{padding:12px 14px 6px;min-width:0}.chart.wide{grid-column:1/-1}
.chart header{display:flex;gap:14px;align-items:baseline;flex-wrap:wrap}
.chart header .now{flex:1;color:var(--soft);font-size:13px;font-variant-numeric:tabular-nums;text-align:right}
.key{color:var(--soft);font-size:12px}.key i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
svg{display:block;width:100%}
svg text{fill:var(--soft);font:11px system-ui,sans-serif;font-variant-numeric:tabular-nums}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-opacity:.5}
.raw{fill:none;stroke:var(--a);stroke-opacity:.3}.main{fill:none;stroke:var(--a);stroke-width:1.8;stroke-linejoin:round}
.val{fill:none;stroke:var(--b);stroke-width:1.8}.dot{fill:var(--b)}.bar{fill:var(--a)}
.cross{stroke:var(--soft);stroke-dasharray:3 3}
.tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:14px;margin-top:14px;align-items:start}
.table{overflow:hidden}.table h2{padding:12px 16px;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-size:13px}
td{padding:4px 16px;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
td:first-child{color:var(--soft);width:40%}tr:last-child td{border:0}
@media(max-width:480px){.charts,.tables{grid-template-columns:1fr}main{padding:16px 12px}}
)css";

const char* const kBody = R"html(
<main>
<h1 id="title"></h1><p class="soft" id="subtitle"></p>
<div class="cards" id="cards"></div>
<div class="charts" id="charts"></div>
<div class="tables" id="tables"></div>
</main>
)html";

const char* const kScript = R"js(
const D = JSON.parse(document.getElementById('run').textContent);
const $ = id => document.getElementById(id);
const el = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls; if (text !== undefined) e.textContent = text; return e; };
const svg = (tag, attributes) => { const e = document.createElementNS('http://www.w3.org/2000/svg', tag); for (const k in attributes) e.setAttribute(k, attributes[k]); return e; };
const last = a => a[a.length - 1];
const digits = (v, n) => v === 0 ? '0' : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(Math.max(n - 2, 0)).replace('e+', 'e').replace(/\.?0+e/, 'e') : `${+v.toPrecision(n)}`;
const number = v => digits(v, 4);
const count = v => v < 1e4 ? `${Math.round(v)}` : v < 1e6 ? `${+(v / 1e3).toPrecision(3)} k` : v < 1e9 ? `${+(v / 1e6).toPrecision(3)} M` : `${+(v / 1e9).toPrecision(3)} G`;
const bytes = b => { let u = 0; for (; b >= 1024 && u < 4; ++u) b /= 1024; return `${+b.toPrecision(3)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][u]}`; };
const millis = v => v < 1e3 ? `${+v.toPrecision(3)} ms` : `${+(v / 1e3).toPrecision(3)} s`;
const clock = s => { s = Math.round(s); const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60, two = n => `${n}`.padStart(2, '0'); return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`; };
const mean = a => a.reduce((s, v) => s + v, 0) / a.length;
const tail = a => a.slice(-Math.max(1, Math.round(a.length / 20)));

// ---- Numbers
const done = D.step.length ? last(D.step) : 0;
$('title').textContent = D.title;
document.title = D.title;
$('subtitle').textContent = `step ${done} of ${D.total_steps}${D.running ? `, running; about ${clock(D.seconds / Math.max(done, 1) * (D.total_steps - done))} left` : ''}`;
const cards = [];
if (D.loss.length) cards.push([number(mean(tail(D.loss))), 'loss, mean of the last steps']);
if (D.validations.length) {
  const best = D.validations.reduce((a, b) => b[1] < a[1] ? b : a);
  cards.push([number(last(D.validations)[1]), 'validation loss, last'], [number(best[1]), `validation loss, best: step ${best[0]}`]);
}
cards.push([count(D.tokens), 'tokens trained on']);
if (D.step.length) cards.push([count(mean(tail(D.tokens_per_second))), 'tokens a second'], [millis(mean(tail(D.step_ms))), 'a step'], [bytes(Math.max(...D.peak_bytes)), 'most memory']);
cards.push([clock(D.seconds), 'training time']);
for (const [value, what] of cards) {
  const card = el('div', 'card');
  card.append(el('b', '', value), el('span', '', what));
  $('cards').append(card);
}

// ---- Charts
// About n round numbers in [low, high].
function ticks(low, high, n) {
  const rough = (high - low) / n, power = 10 ** Math.floor(Math.log10(rough)), part = rough / power;
  const step = power * (part < 1.5 ? 1 : part < 3 ? 2 : part < 7 ? 5 : 10), list = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) list.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return list;
}
// Of bytes round ones in their unit.
function ticksOf(low, high, name) {
  const unit = name === bytes ? 1024 ** Math.floor(Math.log(Math.max(high, 1)) / Math.log(1024)) : 1;
  return ticks(low / unit, high / unit, 4).map(v => v * unit);
}
const W = 430, LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 24;
function frame(title, keys, wide) {
  const box = el('div', wide ? 'chart wide' : 'chart'), head = el('header'), now = el('span', 'now');
  head.append(el('h2', '', title));
  for (const [name, colour] of keys) { const key = el('span', 'key'), i = el('i'); i.style.background = `var(--${colour})`; key.append(i, name); head.append(key); }
  head.append(now);
  const width = wide ? 3 * W : W, height = wide ? 300 : 170, picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title});
  box.append(head, picture);
  $('charts').append(box);
  return {picture, now, width, height};
}
function axes(f, x, y, xTicks, yTicks, xName, yName) {
  for (const v of yTicks) {
    f.picture.append(svg('line', {class: 'grid', x1: LEFT, x2: f.width - RIGHT, y1: y(v), y2: y(v)}));
    const label = svg('text', {x: LEFT - 8, y: y(v) + 4, 'text-anchor': 'end'});
    label.textContent = yName(v);
    f.picture.append(label);
  }
  for (const v of xTicks) {
    const label = svg('text', {x: x(v), y: f.height - 6, 'text-anchor': 'middle'});
    label.textContent = xName(v);
    f.picture.append(label);
  }
  f.picture.append(svg('line', {class: 'axis', x1: LEFT, x2: f.width - RIGHT, y1: f.height - BOTTOM, y2: f.height - BOTTOM}));
}
// Lines: [values, class, [steps]]; the first is named under the pointer, with `more` after it.
function chart(title, lines, name, options = {}) {
  const f = frame(title, options.keys || [], options.wide);
  const values = lines.flatMap(l => l[0]).filter(Number.isFinite);
  if (!values.length) return;
  const robust = [...values].sort((a, b) => a - b), high0 = options.robust ? robust[Math.floor((robust.length - 1) * .995)] : last(robust);
  let low = options.zero ? 0 : robust[0], high = high0;
  if (high <= low) { high = low + Math.abs(low || 1) * .1; if (!options.zero) low -= Math.abs(low || 1) * .1; }
  const room = (high - low) * .06;
  high += room; if (!options.zero) low -= room;
  const end = D.running ? done : D.total_steps, x = s => LEFT + (f.width - LEFT - RIGHT) * s / Math.max(end, 1);
  const y = v => TOP + (f.height - TOP - BOTTOM) * (1 - (Math.min(v, high) - low) / (high - low));
  axes(f, x, y, ticks(0, Math.max(end, 1), options.wide ? 10 : 5).filter(Number.isInteger), ticksOf(low, high, name), count, name);
  for (const [list, cls, steps = D.step] of lines) {
    f.picture.append(svg('polyline', {class: cls, points: list.map((v, i) => Number.isFinite(v) ? `${x(steps[i]).toFixed(1)},${y(v).toFixed(1)}` : '').join(' ')}));
    if (cls === 'val' || list.length === 1) list.forEach((v, i) => f.picture.append(svg('circle', {class: cls === 'val' ? 'dot' : 'bar', cx: x(steps[i]), cy: y(v), r: 3})));
  }
  const cross = svg('line', {class: 'cross', y1: TOP, y2: f.height - BOTTOM, visibility: 'hidden'});
  f.picture.append(cross);
  f.picture.addEventListener('pointermove', ev => {
    const box = f.picture.getBoundingClientRect(), at = ((ev.clientX - box.left) / box.width * f.width - LEFT) / (f.width - LEFT - RIGHT) * end;
    let k = 0;
    D.step.forEach((s, i) => { if (Math.abs(s - at) < Math.abs(D.step[k] - at)) k = i; });
    cross.setAttribute('x1', x(D.step[k])); cross.setAttribute('x2', x(D.step[k])); cross.setAttribute('visibility', 'visible');
    f.now.textContent = `step ${D.step[k]}: ${name(lines[0][0][k])}`;
  });
  f.picture.addEventListener('pointerleave', () => { cross.setAttribute('visibility', 'hidden'); f.now.textContent = ''; });
}
// An exponential mean whose reach is a fiftieth of the run, corrected for its beginning.
function smooth(list) {
  const keep = 1 - 1 / Math.max(1, list.length / 50);
  let sum = 0, weight = 0;
  return list.map(v => { sum = keep * sum + (1 - keep) * v; weight = keep * weight + 1 - keep; return sum / weight; });
}
chart('Loss', [[D.loss, 'raw'], [smooth(D.loss), 'main'], [D.validations.map(v => v[1]), 'val', D.validations.map(v => v[0])]], number,
  {wide: true, robust: true, keys: [['training', 'a'], ...(D.validations.length ? [['validation', 'b']] : [])]});
chart('Learning rate', [[D.learning_rate, 'main']], v => digits(v, 3), {zero: true});
chart('Gradient norm', [[D.grad_norm, 'raw'], [smooth(D.grad_norm), 'main']], number, {zero: true, robust: true});
chart('Tokens a second', [[D.tokens_per_second, 'raw'], [smooth(D.tokens_per_second), 'main']], count, {zero: true});
chart('Time of a step', [[D.step_ms, 'raw'], [smooth(D.step_ms), 'main']], millis, {zero: true, robust: true});
chart('Memory, the most so far', [[D.peak_bytes, 'main']], bytes, {zero: true});
if (D.lengths.counts.length) {
  const f = frame('Lengths of the training sequences, in tokens', []), n = D.lengths.counts.length, most = Math.max(...D.lengths.counts);
  const x = i => LEFT + (f.width - LEFT - RIGHT) * i / n, y = v => TOP + (f.height - TOP - BOTTOM) * (1 - v / (most * 1.06));
  axes(f, v => x(v / D.lengths.width), y, ticks(0, n * D.lengths.width, 5), ticks(0, most, 4).filter(Number.isInteger), count, count);
  D.lengths.counts.forEach((v, i) => {
    const bar = svg('rect', {class: 'bar', x: x(i) + .5, width: Math.max(x(i + 1) - x(i) - 1, .5), y: y(v), height: y(0) - y(v)});
    bar.addEventListener('pointerenter', () => f.now.textContent = `${i * D.lengths.width} to ${(i + 1) * D.lengths.width - 1} tokens: ${count(v)}`);
    f.picture.append(bar);
  });
}

// ---- Tables
for (const [title, rows] of [['Settings', D.settings], ['Environment', D.environment]]) {
  if (!rows.length) continue;
  const box = el('div', 'table'), table = el('table');
  for (const [name, value] of rows) { const row = el('tr'); row.append(el('td', '', name), el('td', '', value)); table.append(row); }
  box.append(el('h2', '', title), table);
  $('tables').append(box);
}
)js";

}  // namespace caldera::report_page
