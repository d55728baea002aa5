#include "training/report/report_page.h"

#include <fmt/format.h>

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
.raw{fill:none;stroke-opacity:.3}.main{fill:none;stroke-width:1.8;stroke-linejoin:round}.bar{fill:var(--a)}
.cross{stroke:var(--soft);stroke-dasharray:3 3}
.tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:14px;margin-top:14px;align-items:start}
.table{overflow:hidden}.table h2{padding:12px 16px;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-size:13px}
td{padding:4px 16px;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
td:first-child{color:var(--soft)}tr:last-child td{border:0}
.all .table:first-child{grid-column:1/-1}.all .table:first-child td:first-child{white-space:nowrap}
.all .table:first-child td:last-child{width:100%;white-space:pre-wrap}
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

const char* const kCommonScript = R"js(
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
const LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 24;
function frame(title, keys, wide) {
  const box = el('div', wide ? 'chart wide' : 'chart'), head = el('header'), now = el('span', 'now');
  head.append(el('h2', '', title));
  for (const [name, colour] of keys) { const key = el('span', 'key'), i = el('i'); i.style.background = colour; key.append(i, name); head.append(key); }
  head.append(now);
  box.append(head);
  $('charts').append(box);
  const width = Math.max(head.clientWidth, 240), height = wide ? 300 : 170, picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title});
  box.append(picture);
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
// Lines: {steps, values, cls, colour, name}. Those with a name are told under the pointer.
function chart(title, lines, name, options) {
  const f = frame(title, options.keys || [], options.wide);
  const values = lines.flatMap(l => l.values).filter(Number.isFinite);
  if (!values.length) return;
  const sorted = [...values].sort((a, b) => a - b);
  let low = options.zero ? 0 : sorted[0], high = options.robust ? sorted[Math.floor((sorted.length - 1) * .995)] : last(sorted);
  if (high <= low) { high = low + Math.abs(low || 1) * .1; if (!options.zero) low -= Math.abs(low || 1) * .1; }
  const room = (high - low) * .06, end = Math.max(options.end, 1);
  high += room; if (!options.zero) low -= room;
  const x = s => LEFT + (f.width - LEFT - RIGHT) * s / end;
  const y = v => TOP + (f.height - TOP - BOTTOM) * (1 - (Math.min(v, high) - low) / (high - low));
  axes(f, x, y, ticks(0, end, f.width / 80).filter(Number.isInteger), ticksOf(low, high, name), count, name);
  for (const l of lines) {
    const points = l.values.map((v, i) => Number.isFinite(v) ? `${x(l.steps[i]).toFixed(1)},${y(v).toFixed(1)}` : '').join(' ');
    f.picture.append(svg('polyline', {class: l.cls, points, style: `stroke:${l.colour}`}));
    if (l.dots || l.values.length === 1) l.values.forEach((v, i) => f.picture.append(svg('circle', {cx: x(l.steps[i]), cy: y(v), r: 3, style: `fill:${l.colour}`})));
  }
  const cross = svg('line', {class: 'cross', y1: TOP, y2: f.height - BOTTOM, visibility: 'hidden'}), told = lines.filter(l => l.name !== undefined && l.steps.length);
  f.picture.append(cross);
  f.picture.addEventListener('pointermove', ev => {
    const box = f.picture.getBoundingClientRect(), at = ((ev.clientX - box.left) / box.width * f.width - LEFT) / (f.width - LEFT - RIGHT) * end;
    const nearest = l => l.steps.reduce((k, s, i) => Math.abs(s - at) < Math.abs(l.steps[k] - at) ? i : k, 0);
    if (!told.length) return;
    const step = told[0].steps[nearest(told[0])];
    cross.setAttribute('x1', x(step)); cross.setAttribute('x2', x(step)); cross.setAttribute('visibility', 'visible');
    f.now.textContent = `step ${step}: ${told.map(l => `${l.name}${l.name ? ' ' : ''}${name(l.values[nearest(l)])}`).join(', ')}`;
  });
  f.picture.addEventListener('pointerleave', () => { cross.setAttribute('visibility', 'hidden'); f.now.textContent = ''; });
}
// An exponential mean whose reach is a fiftieth of the run, corrected for its beginning.
function smooth(list) {
  const keep = 1 - 1 / Math.max(1, list.length / 50);
  let sum = 0, weight = 0;
  return list.map(v => { sum = keep * sum + (1 - keep) * v; weight = keep * weight + 1 - keep; return sum / weight; });
}
function cards(list) {
  for (const [value, what] of list) {
    const card = el('div', 'card');
    card.append(el('b', '', value), el('span', '', what));
    $('cards').append(card);
  }
}
function table(title, rows) {
  if (!rows.length) return;
  const box = el('div', 'table'), body = el('table');
  for (const cells of rows) { const row = el('tr'); row.append(...cells.map(cell => el('td', '', cell))); body.append(row); }
  box.append(el('h2', '', title), body);
  $('tables').append(box);
}
)js";

const char* const kRunScript = R"js(
const done = D.step.length ? last(D.step) : 0, end = D.running ? done : D.total_steps, A = 'var(--a)', B = 'var(--b)';
$('title').textContent = document.title = D.title;
$('subtitle').textContent = `step ${done} of ${D.total_steps}${D.running ? `, running; about ${clock(D.seconds / Math.max(done, 1) * (D.total_steps - done))} left` : ''}`;
if (D.loss.length) cards([[number(mean(tail(D.loss))), 'loss, mean of the last steps']]);
if (D.validations.length) {
  const best = D.validations.reduce((a, b) => b[1] < a[1] ? b : a);
  cards([[number(last(D.validations)[1]), 'validation loss, last'], [number(best[1]), `validation loss, best: step ${best[0]}`]]);
}
cards([[count(D.tokens), 'tokens trained on']]);
if (D.step.length) cards([[count(mean(tail(D.tokens_per_second))), 'tokens a second'], [millis(mean(tail(D.step_ms))), 'a step'], [bytes(Math.max(...D.peak_bytes)), 'most memory']]);
cards([[clock(D.seconds), 'training time']]);

const raw = values => ({steps: D.step, values, cls: 'raw', colour: A, name: ''}), main = values => ({steps: D.step, values, cls: 'main', colour: A});
const both = values => [raw(values), main(smooth(values))], exact = values => [{...main(values), name: ''}];
const validation = {steps: D.validations.map(v => v[0]), values: D.validations.map(v => v[1]), cls: 'main', colour: B, dots: true};
chart('Loss', [...both(D.loss), validation], number, {end, wide: true, robust: true, keys: [['training', A], ...(D.validations.length ? [['validation', B]] : [])]});
chart('Learning rate', exact(D.learning_rate), v => digits(v, 3), {end, zero: true});
chart('Gradient norm', both(D.grad_norm), number, {end, zero: true, robust: true});
chart('Tokens a second', both(D.tokens_per_second), count, {end, zero: true});
chart('Time of a step', both(D.step_ms), millis, {end, zero: true, robust: true});
chart('Memory, the most so far', exact(D.peak_bytes), bytes, {end, zero: true});
if (D.lengths.counts.length) {
  const f = frame('Lengths of the training sequences, in tokens', []), n = D.lengths.counts.length, most = Math.max(...D.lengths.counts);
  const x = i => LEFT + (f.width - LEFT - RIGHT) * i / n, y = v => TOP + (f.height - TOP - BOTTOM) * (1 - v / (most * 1.06));
  axes(f, v => x(v / D.lengths.width), y, ticks(0, n * D.lengths.width, f.width / 80), ticks(0, most, 4).filter(Number.isInteger), count, count);
  D.lengths.counts.forEach((v, i) => {
    const bar = svg('rect', {class: 'bar', x: x(i) + .5, width: Math.max(x(i + 1) - x(i) - 1, .5), y: y(v), height: y(0) - y(v)});
    bar.addEventListener('pointerenter', () => f.now.textContent = `${i * D.lengths.width} to ${(i + 1) * D.lengths.width - 1} tokens: ${count(v)}`);
    f.picture.append(bar);
  });
}
if (D.samples.length) $('tables').classList.add('all');
table('Samples', D.samples.map(([step, text]) => [`step ${step}`, text]));
table('Settings', D.settings);
table('Environment', D.environment);
)js";

const char* const kCompareScript = R"js(
const COLOURS = ['#4f86e8', '#d64d78', '#2f9e6e', '#e58a2e', '#8a63d2', '#1f93a8', '#b8931c', '#8b97a6'], colour = i => COLOURS[i % COLOURS.length];
$('title').textContent = document.title = `${D.runs.length} runs`;
$('subtitle').textContent = D.runs.map(r => r.name).join(' \u00b7 ');
const end = Math.max(...D.runs.flatMap(r => [...r.step, ...r.validations.map(v => v[0])]), 1), keys = D.runs.map((r, i) => [r.name, colour(i)]);
const lines = values => D.runs.map((r, i) => ({steps: r.step, values: values(r), cls: 'main', colour: colour(i), name: r.name}));
const validations = D.runs.map((r, i) => ({steps: r.validations.map(v => v[0]), values: r.validations.map(v => v[1]), cls: 'main', colour: colour(i), name: r.name, dots: true}));
if (validations.some(l => l.values.length)) chart('Validation loss', validations, number, {end, wide: true, keys});
if (D.runs.some(r => r.step.length)) {
  chart('Training loss, smoothed', lines(r => smooth(r.loss)), number, {end, wide: true, robust: true, keys});
  chart('Learning rate', lines(r => r.learning_rate), v => digits(v, 3), {end, zero: true});
  chart('Gradient norm, smoothed', lines(r => smooth(r.grad_norm)), number, {end, zero: true, robust: true});
  chart('Tokens a second, smoothed', lines(r => smooth(r.tokens_per_second)), count, {end, zero: true});
}
table('Runs', D.table);
)js";

std::string make_page(const std::string& data, const char* script, const char* head) {
  // Nothing in the data ends its element.
  std::string escaped;
  for (const char c : data) {
    if (c == '<')
      escaped += "\\u003c";
    else
      escaped += c;
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">{}"
      "<title>Caldera: "
      "run</title><style>{}</style></head><body>{}{}{}{}\n<script>{}{}</script></body></html>\n",
      head, kStyle, kBody, kDataBegin, escaped, kDataEnd, kCommonScript, script);
}

}  // namespace caldera::report_page
