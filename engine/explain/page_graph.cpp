// The page's script for graphs: layers from the inputs down, an order with few crossings, curves between.
#include "engine/explain/page.h"

namespace caldera::explain_page {

const char* const kGraphScript = R"js(
const NS = document.querySelector('#memory svg').namespaceURI;
function svg(tag, attrs, parent) {
  const e = document.createElementNS(NS, tag);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (parent) parent.appendChild(e);
  return e;
}

// Places nodes {w, h, layer} and dummies of edges that pass a few layers. Returns the size and the edges' points.
function layout(nodes, edges) {
  const GAP = 18, REACH = 10;
  const layers = [];
  const items = nodes.map((n, i) => ({n, i, w: n.w, h: n.h, layer: n.layer, up: [], down: []}));
  const routes = edges.map(([a, b]) => {
    const from = items[a], to = items[b], span = to.layer - from.layer, route = [from];
    if (span > 1 && span <= REACH) {
      for (let l = from.layer + 1; l < to.layer; ++l) {
        const d = {w: 8, h: 0, layer: l, up: [], down: [], dummy: true};
        items.push(d);
        route.push(d);
      }
    }
    route.push(to);
    if (span <= REACH) for (let k = 1; k < route.length; ++k) {
      route[k - 1].down.push(route[k]);
      route[k].up.push(route[k - 1]);
    }
    return route;
  });
  for (const it of items) (layers[it.layer] = layers[it.layer] || []).push(it);
  for (let l = 0; l < layers.length; ++l) layers[l] = layers[l] || [];
  const number = layer => layer.forEach((it, k) => it.pos = k);
  layers.forEach(number);
  const mean = (list, f) => list.reduce((s, x) => s + f(x), 0) / list.length;
  for (let sweep = 0; sweep < 8; ++sweep) {
    const down = sweep % 2 === 0;
    for (let k = 0; k < layers.length; ++k) {
      const layer = layers[down ? k : layers.length - 1 - k];
      for (const it of layer) {
        const near = down ? it.up : it.down;
        it.key = near.length ? mean(near, x => x.pos / Math.max(1, layers[x.layer].length - 1)) : it.pos / Math.max(1, layer.length - 1);
      }
      layer.sort((a, b) => a.key - b.key);
      number(layer);
    }
  }
  for (const layer of layers) {
    let x = 0;
    for (const it of layer) { it.x = x + it.w / 2; x += it.w + GAP; }
    for (const it of layer) it.x -= x / 2;
  }
  for (let round = 0; round < 24; ++round) {
    const down = round % 2 === 0;
    for (let k = 0; k < layers.length; ++k) {
      const layer = layers[down ? k : layers.length - 1 - k];
      const want = layer.map(it => {
        const near = down ? it.up : it.down;
        return near.length ? mean(near, x => x.x) : it.x;
      });
      const sep = (a, b) => (layer[a].w + layer[b].w) / 2 + GAP;
      const right = [], left = [];
      for (let i = 0; i < layer.length; ++i) right[i] = i ? Math.max(want[i], right[i - 1] + sep(i - 1, i)) : want[i];
      for (let i = layer.length - 1; i >= 0; --i) left[i] = i + 1 < layer.length ? Math.min(want[i], left[i + 1] - sep(i, i + 1)) : want[i];
      layer.forEach((it, i) => it.x = (right[i] + left[i]) / 2);
    }
  }
  let y = 0;
  for (const layer of layers) {
    const h = Math.max(0, ...layer.map(it => it.h));
    for (const it of layer) it.y = y + h / 2;
    y += h ? h + 34 : 0;
  }
  let low = Infinity, high = -Infinity;
  for (const it of items) { low = Math.min(low, it.x - it.w / 2); high = Math.max(high, it.x + it.w / 2); }
  for (const it of items) it.x -= low;
  items.forEach(it => { if (it.n) { it.n.x = it.x; it.n.y = it.y; } });
  return {width: high - low, height: Math.max(0, y - 34), routes};
}

function routePath(route) {
  const first = route[0], last = route[route.length - 1];
  let x = first.x, y = first.y + first.h / 2, d = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  for (let k = 1; k < route.length; ++k) {
    const to = route[k], ty = k + 1 < route.length ? to.y : to.y - to.h / 2 - 5, bend = Math.min(60, (ty - y) / 2);
    d += `C${x.toFixed(1)} ${(y + bend).toFixed(1)} ${to.x.toFixed(1)} ${(ty - bend).toFixed(1)} ${to.x.toFixed(1)} ${ty.toFixed(1)}`;
    x = to.x; y = ty;
  }
  return {d, arrow: `M${(last.x - 4).toFixed(1)} ${(y - 2).toFixed(1)}h8l-4 7z`, long: last.layer - first.layer > 10};
}

// nodes: {label, sub, form, layer, title, key, out}; edges: [from, to]. select(key) is told of clicks.
// Returns {mark(keys), find(text), reveal(key)}.
function drawGraph(host, bar, nodes, edges, select) {
  host.textContent = '';
  bar.querySelectorAll('button').forEach(b => b.remove());
  const ruler = document.createElement('canvas').getContext('2d');
  const wide = (font, text) => { ruler.font = `${font} system-ui,sans-serif`; return ruler.measureText(text).width; };
  for (const n of nodes) {
    n.w = Math.max(64, 22 + wide('600 12px', n.label), 22 + wide('10.5px', n.sub));
    n.h = n.sub ? 38 : 26;
  }
  const {width, height, routes} = layout(nodes, edges);
  const PAD = 24, vw = host.clientWidth || 1200;
  const fit = Math.min(1, (vw - 2 * PAD) / Math.max(1, width));
  const vh = Math.round(Math.min(620, Math.max(150, height * Math.max(fit, .5) + 2 * PAD)));
  const root = svg('svg', {class: 'main', height: vh, tabindex: 0, role: 'img'}, host);
  const g = svg('g', {}, root);
  const paths = routes.map(routePath);
  const all = (long) => paths.filter(p => p.long === long).map(p => p.d).join('');
  svg('path', {class: 'e far-e', d: all(true)}, g);
  svg('path', {class: 'e', d: all(false)}, g);
  svg('path', {class: 'a', d: paths.filter(p => !p.long).map(p => p.arrow).join('')}, g);
  const near = nodes.map(() => []);
  edges.forEach(([a, b], k) => { near[a].push(k); near[b].push(k); });
  const hot = svg('path', {class: 'hot', d: ''}, g);
  nodes.forEach((n, i) => {
    const e = n.e = svg('g', {class: `n ${n.form}${n.out ? ' out' : ''}`, transform: `translate(${(n.x - n.w / 2).toFixed(1)} ${(n.y - n.h / 2).toFixed(1)})`}, g);
    svg('rect', {class: 'box', width: n.w.toFixed(1), height: n.h, rx: 6}, e);
    svg('rect', {class: 'bar', x: 0, y: 6, width: 3.5, height: n.h - 12, rx: 1.5}, e);
    svg('text', {x: 12, y: n.sub ? 16 : 17}, e).textContent = n.label;
    if (n.sub) svg('text', {class: 's', x: 12, y: 30}, e).textContent = n.sub;
    e.dataset.tip = n.title;
    e.addEventListener('mouseenter', () => hot.setAttribute('d', near[i].map(k => paths[k].d).join('')));
    e.addEventListener('mouseleave', () => hot.setAttribute('d', ''));
    e.addEventListener('click', () => { if (!moved) select(n.key); });
  });

  const fits = fit > .55 && height * fit <= vh;
  let scale = fits ? fit : Math.max(.72, Math.min(1, fit)), tx = 0, ty = PAD, moved = false;
  const mini = document.createElement('div');
  let frame = null;
  if (!fits && nodes.length > 1) {
    const k = Math.min(190 / width, (vh - 30) / height, 1);
    mini.className = 'mini';
    const m = svg('svg', {width: Math.max(14, width * k), height: Math.max(14, height * k), viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none'}, mini);
    const thin = Math.max(1, 1 / k / 2);
    svg('path', {d: nodes.map(n => `M${(n.x - n.w / 2).toFixed(0)} ${(n.y - n.h / 2).toFixed(0)}h${Math.max(n.w, thin).toFixed(0)}v${Math.max(n.h, thin).toFixed(0)}h${-Math.max(n.w, thin).toFixed(0)}z`).join('')}, m);
    frame = svg('rect', {}, m);
    host.appendChild(mini);
    const jump = ev => {
      const box = m.getBoundingClientRect();
      center((ev.clientX - box.left) / box.width * width, (ev.clientY - box.top) / box.height * height);
    };
    mini.addEventListener('pointerdown', ev => { jump(ev); mini.setPointerCapture(ev.pointerId); });
    mini.addEventListener('pointermove', ev => { if (ev.buttons) jump(ev); });
  }
  function apply() {
    g.setAttribute('transform', `translate(${tx.toFixed(1)} ${ty.toFixed(1)}) scale(${scale.toFixed(4)})`);
    g.classList.toggle('far', scale < .34);
    if (frame) {
      frame.setAttribute('x', -tx / scale); frame.setAttribute('y', -ty / scale);
      frame.setAttribute('width', root.clientWidth / scale); frame.setAttribute('height', vh / scale);
    }
  }
  function center(x, y) { tx = root.clientWidth / 2 - x * scale; ty = vh / 2 - y * scale; apply(); }
  function zoom(by, cx = root.clientWidth / 2, cy = vh / 2) {
    const next = Math.min(3, Math.max(.02, scale * by));
    tx = cx - (cx - tx) * next / scale; ty = cy - (cy - ty) * next / scale; scale = next;
    apply();
  }
  function whole() {
    scale = Math.min(1, (root.clientWidth - 2 * PAD) / Math.max(1, width), (vh - 2 * PAD) / Math.max(1, height));
    center(width / 2, height / 2);
  }
  function start() {
    if (fits) return whole();
    const first = nodes.reduce((a, n) => n.y < a.y ? n : a, nodes[0]);
    const top = nodes.filter(n => n.y <= first.y + 120);
    tx = root.clientWidth / 2 - top.reduce((s, n) => s + n.x, 0) / top.length * scale;
    apply();
  }
  root.addEventListener('pointerdown', ev => {
    moved = false;
    const x = ev.clientX - tx, y = ev.clientY - ty, sx = ev.clientX, sy = ev.clientY;
    const move = e => {
      if (Math.abs(e.clientX - sx) + Math.abs(e.clientY - sy) > 4) moved = true;
      if (moved) { tx = e.clientX - x; ty = e.clientY - y; apply(); }
    };
    const up = () => { removeEventListener('pointermove', move); removeEventListener('pointerup', up); };
    addEventListener('pointermove', move); addEventListener('pointerup', up);
  });
  root.addEventListener('wheel', ev => {
    if (!ev.ctrlKey && !ev.metaKey && document.activeElement !== root) return;
    ev.preventDefault();
    const box = root.getBoundingClientRect();
    zoom(Math.exp(-ev.deltaY * .0016), ev.clientX - box.left, ev.clientY - box.top);
  }, {passive: false});
  const button = (text, title, act) => {
    const b = document.createElement('button');
    b.textContent = text; b.title = title; b.onclick = act; bar.appendChild(b);
  };
  button('\u2212', 'smaller', () => zoom(1 / 1.3));
  button('+', 'larger', () => zoom(1.3));
  button('whole', 'the whole graph', whole);
  button('start', 'back to the beginning', () => { scale = fits ? fit : .8; ty = PAD; start(); });
  start();
  return {
    mark(key) {
      for (const n of nodes) n.e.classList.toggle('sel', key !== null && (n.key === key || (n.keys || []).includes(key)));
    },
    find(text) {
      let first = null;
      for (const n of nodes) {
        const hit = text !== '' && n.label.toLowerCase().includes(text);
        n.e.classList.toggle('hit', hit);
        if (hit && !first) first = n;
      }
      if (first) center(first.x, first.y);
    },
    reveal(key) {
      const n = nodes.find(n => n.key === key || (n.keys || []).includes(key));
      if (n && !fits) center(n.x, n.y);
    },
  };
}
)js";

}  // namespace caldera::explain_page
