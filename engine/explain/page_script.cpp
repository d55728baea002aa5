// The page's script but for graphs: numbers, table, and what belongs together.
#include "engine/explain/page.h"

namespace caldera::explain_page {

const char* const kPageScript = R"js(
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const FORMS = {map: 'element-wise', row: 'rows', reduce: 'reduction', contract: 'contraction', attention: 'attention', index: 'gather, scatter', linalg: 'matrix routine', copy: 'copy, cast'};
const bytes = b => { let u = 0; for (; b >= 1024 && u < 4; ++u) b /= 1024; return u ? `${b < 10 ? b.toFixed(2) : b < 100 ? b.toFixed(1) : b.toFixed(0)} ${['', 'KiB', 'MiB', 'GiB', 'TiB'][u]}` : `${b} B`; };
const count = n => n < 1e4 ? `${n}` : n < 1e6 ? `${(n / 1e3).toPrecision(3)} k` : n < 1e9 ? `${(n / 1e6).toPrecision(3)} M` : n < 1e12 ? `${(n / 1e9).toPrecision(3)} G` : `${(n / 1e12).toPrecision(3)} T`;
const micros = s => s < 1e-3 ? `${(s * 1e6).toPrecision(3)} \u00b5s` : s < 1 ? `${(s * 1e3).toPrecision(3)} ms` : `${s.toPrecision(3)} s`;
const shape = d => `(${d.join(', ')}${d.length === 1 ? ',' : ''})`;
const sum = f => D.steps.reduce((s, x) => s + f(x), 0);
const el = (tag, cls, text) => { const e = document.createElement(tag); if (cls) e.className = cls; if (text !== undefined) e.textContent = text; return e; };
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;

// ---- Numbers
const flops = sum(s => s.flops), moved = sum(s => s.read + s.written), timed = D.steps.length > 0 && D.steps[0].seconds !== undefined;
$('title').textContent = D.title || 'Evaluation';
$('subtitle').textContent = `${D.device} \u00b7 ${plural(D.graph.length, 'node')} \u2192 ${plural(D.dispatches, 'dispatch').replace('dispatchs', 'dispatches')}`;
const cards = [[D.graph.length, 'graph nodes'], [D.dispatches, 'dispatches'], [D.barriers, 'barriers'],
  [bytes(D.arena_bytes), 'arena'], [bytes(D.peak_bytes), 'peak: arena and outputs'], [count(flops), 'floating-point ops'],
  [bytes(moved), 'read and written']];
if (D.executed) cards.push([micros(D.seconds), 'submit to result'], [D.submits, 'submits'], [D.cache_hit ? 'hit' : 'miss', 'plan cache']);
for (const [value, what] of cards) {
  const c = el('div', 'card');
  c.append(el('b', '', value), el('span', '', what));
  $('cards').append(c);
}
const weight = timed ? s => s.seconds : s => s.read + s.written + 1, total = sum(weight) || 1;
for (const form in FORMS) {
  const mine = D.steps.filter(s => s.form === form);
  if (!mine.length) continue;
  const part = mine.reduce((a, s) => a + weight(s), 0) / total;
  const bar = el('i', `c ${form}`);
  bar.style.width = `${100 * part}%`;
  $('share').append(bar);
  const item = el('span', form);
  item.append(el('i', 'c'), `${FORMS[form]}: ${plural(mine.length, 'step')}, ${(100 * part).toFixed(part < .1 ? 1 : 0)} % of the ${timed ? 'time' : 'bytes'}`);
  $('legend').append(item);
}

// ---- Hints under the pointer
const tip = $('tip');
document.querySelectorAll('#memory title').forEach(t => { t.parentNode.dataset.tip = t.textContent; t.remove(); });
document.addEventListener('pointermove', ev => {
  const on = ev.target.closest && ev.target.closest('[data-tip]');
  tip.style.display = on ? 'block' : 'none';
  if (!on) return;
  tip.textContent = on.dataset.tip;
  tip.style.left = `${Math.min(ev.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${ev.clientY + 18 + tip.offsetHeight > innerHeight ? ev.clientY - tip.offsetHeight - 10 : ev.clientY + 18}px`;
});

// ---- The plan
const users = D.steps.map(() => 0), after = {nodes: [], edges: []};
const describe = (s, i) => `step ${i}: ${s.name}\n${FORMS[s.form]} over ${shape(s.dims)} ${s.dtype}${s.joined ? ', joined to the step before' : ''}${s.barrier ? ', after a barrier' : ''}\n${s.ops} ops, ${count(s.flops)} flop, ${bytes(s.read)} read, ${bytes(s.written)} written${s.seconds !== undefined ? `\n${micros(s.seconds)}` : ''}`;
const clip = (t, n) => t.length > n ? t.slice(0, n - 1) + '\u2026' : t;
D.steps.forEach((s, i) => {
  const layer = s.from.reduce((l, f) => Math.max(l, after.nodes[f].layer + 1), 0);
  after.nodes.push({label: clip(s.label || s.name, 30), sub: `${s.joined ? 'joined \u00b7 ' : ''}${i} \u00b7 ${clip(s.label ? s.name.replace(`${s.label}: `, '') : '', 22)}${s.label ? ' ' : ''}${shape(s.dims)}`, form: s.form, layer, title: describe(s, i), key: i, out: s.out});
  for (const f of s.from) after.edges.push([f, i]);
});
for (let i = D.steps.length - 1; i >= 0; --i) {  // beside those who read it, not at the top
  const s = after.nodes[i], next = after.edges.length < 4000 ? after.edges.filter(e => e[0] === i).map(e => after.nodes[e[1]].layer) : [];
  if (!D.steps[i].from.length && next.length) s.layer = Math.min(...next) - 1;
}

// ---- The graph before
// Numbers are left out of the picture. Of a big graph also views are drawn as part of the edges they lie on, and equal
// neighbours (one layer, one operation, one shape) as one box.
const stepOf = D.graph.map(() => null);
D.steps.forEach((s, i) => s.nodes.forEach(p => { if (p < stepOf.length && stepOf[p] === null) stepOf[p] = i; }));
function before(every) {
  const keep = D.graph.map(n => n.kind !== 'scalar' && (every || n.kind !== 'view'));
  const through = D.graph.map((n, p) => p);
  D.graph.forEach((n, p) => { if (!keep[p]) through[p] = n.in.length && n.kind !== 'scalar' ? through[n.in[0]] : -1; });
  const layer = D.graph.map(() => 0), lowest = D.graph.map(() => Infinity), ins = [];
  D.graph.forEach((n, p) => {
    if (!keep[p]) return;
    ins[p] = [...new Set(n.in.map(q => through[q]).filter(q => q >= 0 && keep[q]))];
    layer[p] = ins[p].reduce((l, q) => Math.max(l, layer[q] + 1), 0);
  });
  D.graph.forEach((n, p) => { if (keep[p]) for (const q of ins[p]) lowest[q] = Math.min(lowest[q], layer[p] - 1); });
  const shift = 1;
  D.graph.forEach((n, p) => { if (keep[p]) layer[p] = (n.in.length === 0 && lowest[p] < Infinity ? lowest[p] : layer[p]) + shift; });
  const outs = new Set(D.outputs.map(p => through[p])), boxes = [], of = [], groups = new Map();
  D.graph.forEach((n, p) => {
    if (!keep[p]) return;
    const form = n.kind === 'data' ? 'data' : stepOf[p] !== null ? D.steps[stepOf[p]].form : n.kind;
    const group = every ? p : `${layer[p]}|${n.op}|${n.shape}|${form}|${outs.has(p)}`;
    let k = groups.get(group);
    if (k === undefined) {
      groups.set(group, k = boxes.length);
      boxes.push({op: n.op, shape: n.shape, dtype: n.dtype, form, layer: layer[p], members: [], out: outs.has(p)});
    }
    of[p] = k;
    boxes[k].members.push(p);
  });
  const seen = new Set(), edges = [];
  D.graph.forEach((n, p) => {
    if (!keep[p]) return;
    for (const q of ins[p]) {
      const id = of[q] * boxes.length + of[p];
      if (of[q] !== of[p] && !seen.has(id)) { seen.add(id); edges.push([of[q], of[p]]); }
    }
  });
  for (const b of boxes) {
    const steps = [...new Set(b.members.map(p => stepOf[p]).filter(s => s !== null))];
    b.label = b.op + (b.members.length > 1 ? ` \u00d7${b.members.length}` : '');
    b.sub = `${shape(b.shape)} ${b.dtype}`;
    b.key = steps.length ? steps[0] : null;
    b.keys = steps;
    b.title = `${b.label} ${b.sub}\n${b.members.length > 1 ? plural(b.members.length, 'node') : `node ${b.members[0]}`}${b.out ? ', an output' : ''}${steps.length ? `\ncomputed by step ${clip(steps.join(', '), 60)}` : b.form === 'view' ? '\na view: costs nothing' : ''}`;
  }
  const used = [...new Set(boxes.map(b => b.layer))].sort((a, b) => a - b), dense = new Map(used.map((l, k) => [l, k]));
  for (const b of boxes) b.layer = dense.get(b.layer);
  return {nodes: boxes, edges};
}

// ---- The table
const columns = [['#', (s, i) => i], ['kernel', s => s.name, 'l'], ['form', s => s.form, 'l'], ['over', s => s.dims.reduce((a, b) => a * b, 1)],
  ['ops', s => s.ops], ['flop', s => s.flops], ['bytes', s => s.read + s.written], ['flop/byte', s => s.flops / Math.max(1, s.read + s.written)],
  ['scratch', s => s.scratch]];
if (timed) columns.push(['time', s => s.seconds], ['GB/s', s => (s.read + s.written) / s.seconds / 1e9], ['GFLOP/s', s => s.flops / s.seconds / 1e9]);
const rows = D.steps.map((s, i) => {
  const tr = el('tr', 'r'), td = (cls, text) => { const c = el('td', cls, text); tr.append(c); return c; };
  td('', i);
  const k = td('k');
  if (s.label) k.append(el('span', 'lab', s.label));
  k.append(s.label ? s.name.replace(`${s.label}: `, '') : s.name);
  if (s.joined) k.append(el('span', 'soft', ' joined'));
  td('l').append(el('span', `chip ${s.form}`, s.form));
  td('', shape(s.dims)); td('', s.ops); td('', count(s.flops)); td('', bytes(s.read + s.written));
  td('', (s.flops / Math.max(1, s.read + s.written)).toFixed(2)); td('', s.scratch ? bytes(s.scratch) : '\u2013');
  if (timed) { td('', micros(s.seconds)); td('', ((s.read + s.written) / s.seconds / 1e9).toFixed(1)); td('', (s.flops / s.seconds / 1e9).toFixed(1)); }
  tr.onclick = () => open(i, !tr.opened);
  return tr;
});
function open(i, wanted) {
  const tr = rows[i];
  if (tr.opened) { tr.opened.remove(); tr.opened = null; }
  if (!wanted) return;
  const s = D.steps[i], more = tr.opened = el('tr'), cell = el('td', 'code');
  cell.colSpan = columns.length;
  cell.append(el('h4', '', 'operands'));
  cell.append(el('pre', '', s.operands.join('\n')));
  if (s.nodes.length) {
    cell.append(el('h4', '', 'nodes'));
    cell.append(el('pre', '', s.nodes.filter(p => p < D.graph.length).map(p => `${p}: ${D.graph[p].op} ${shape(D.graph[p].shape)} ${D.graph[p].dtype}`).join('\n')));
  }
  s.code.forEach((c, k) => {
    const fold = el('details');
    fold.open = k === 0;
    fold.append(el('summary', '', D.code[c].title), el('pre', '', D.code[c].text));
    cell.append(fold);
  });
  more.append(cell);
  tr.after(more);
}
let by = 0, up = true, wanted = '';
function fill() {
  const order = D.steps.map((s, i) => i).filter(i => D.steps[i].name.toLowerCase().includes(wanted));
  const value = columns[by][1], sign = up ? 1 : -1;
  order.sort((a, b) => { const x = value(D.steps[a], a), y = value(D.steps[b], b); return sign * (x < y ? -1 : x > y ? 1 : a - b); });
  rows.forEach((_, i) => open(i, false));
  $('tbody').replaceChildren(...order.map(i => rows[i]));
  [...$('thead').rows[0].cells].forEach((th, k) => { th.classList.toggle('by', k === by); th.classList.toggle('up', up); });
}
const head = el('tr');
columns.forEach(([text, , cls], k) => {
  const th = el('th', cls || '', text);
  th.onclick = () => { up = by === k ? !up : k < 3; by = k; fill(); };
  head.append(th);
});
$('thead').append(head);
$('filter').oninput = ev => { wanted = ev.target.value.toLowerCase(); fill(); };
fill();

// ---- What belongs together
let chosen = null, graphs = [];
function select(step, from) {
  if (step === null) return;
  const again = chosen === step;
  if (chosen !== null) { rows[chosen].classList.remove('sel'); open(chosen, false); }
  chosen = again ? null : step;
  graphs.forEach((g, k) => { g.mark(chosen); if (chosen !== null && k !== from) g.reveal(chosen); });
  if (chosen === null) return;
  rows[chosen].classList.add('sel');
  open(chosen, true);
  const box = document.querySelector('.scroll');
  box.scrollTop = rows[chosen].offsetTop - 60;
}
const search = (bar, graph, what) => {
  const input = el('input');
  input.type = 'search'; input.placeholder = what; input.setAttribute('aria-label', what);
  input.oninput = () => graph().find(input.value.toLowerCase());
  bar.prepend(input);
};
graphs[0] = drawGraph($('after'), $('after-bar'), after.nodes, after.edges, s => select(s, 0));
const BIG = 260, big = D.graph.length > BIG;
function showBefore(every) {
  const g = before(every);
  graphs[1] = drawGraph($('before'), $('before-bar'), g.nodes, g.edges, s => select(s, 1));
  if (chosen !== null) graphs[1].mark(chosen);
  const scalars = D.graph.filter(n => n.kind === 'scalar').length, known = stepOf.some(s => s !== null);
  $('before-note').textContent = `${plural(D.graph.length, 'node')}${scalars ? `, of which ${plural(scalars, 'number')} left out` : ''}${every ? '' : '; views lie on the edges, equal neighbours share a box'}. ${known ? 'Coloured by the step that computes it; click to find that.' : 'Coloured by operation.'}`;
}
showBefore(!big);
if (big && D.graph.length <= 12000) {
  const label = el('label', 'check'), box = el('input');
  box.type = 'checkbox';
  box.onchange = () => showBefore(box.checked);
  label.append(box, ' every node');
  $('before-bar').prepend(label);
}
search($('after-bar'), () => graphs[0], 'find a step');
search($('before-bar'), () => graphs[1], 'find an operation');
)js";

}  // namespace caldera::explain_page
