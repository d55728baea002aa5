#include "engine/explain/page.h"

namespace caldera::explain_page {

const char* const kStyle = R"css(
:root{color-scheme:light dark;--page:#f5f7fa;--panel:#fff;--ink:#1c2530;--soft:#5c6876;--line:#dde3ea;--hover:#eef2f7;
--code:#f6f8fb;--map:#4f86e8;--copy:#8b97a6;--reduce:#e58a2e;--row:#8a63d2;--contract:#2f9e6e;--attention:#d64d78;
--index:#b8931c;--linalg:#1f93a8;--data:#6b7785;--accent:#d64d78}
@media(prefers-color-scheme:dark){:root{--page:#0d1117;--panel:#12171e;--ink:#dde4ec;--soft:#93a0ae;--line:#28313b;
--hover:#1a212a;--code:#0f141a;--map:#6d9df0;--copy:#7c8896;--reduce:#e89a4c;--row:#a385e0;--contract:#48b487;
--attention:#e26d92;--index:#cbab45;--linalg:#4cb5c9;--data:#8794a2;--accent:#e26d92}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1320px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:22px;margin:0 0 2px;font-weight:650;overflow-wrap:anywhere}
h2{font-size:16px;margin:0;font-weight:650}
p{margin:0}.soft{color:var(--soft)}
section{background:var(--panel);border:1px solid var(--line);border-radius:10px;margin-top:18px;overflow:hidden}
section>header{display:flex;gap:12px;align-items:baseline;flex-wrap:wrap;padding:12px 16px;border-bottom:1px solid var(--line)}
section>header .soft{flex:1;min-width:200px;font-size:13px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:10px;margin-top:18px}
.card{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:10px 14px}
.card b{display:block;font-size:20px;font-weight:650;font-variant-numeric:tabular-nums;white-space:nowrap}
.card span{color:var(--soft);font-size:12px}
.share{display:flex;height:12px;border-radius:6px;overflow:hidden;margin-top:18px;background:var(--line)}
.share i{display:block}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;margin-top:8px;font-size:12px;color:var(--soft)}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
.map{--c:var(--map)}.copy{--c:var(--copy)}.reduce{--c:var(--reduce)}.row{--c:var(--row)}.contract{--c:var(--contract)}
.attention{--c:var(--attention)}.index{--c:var(--index)}.linalg{--c:var(--linalg)}.data{--c:var(--data)}.view{--c:var(--copy)}
.c{background:var(--c)}
button,input,label.check{font:inherit;font-size:13px;color:var(--ink)}
button{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:2px 10px;cursor:pointer;min-width:30px}
button:hover{background:var(--hover)}
input[type=search]{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:3px 10px;width:190px}
.graph{position:relative;background:var(--panel)}
.graph>svg.main{display:block;width:100%;cursor:grab;touch-action:none;outline:none;user-select:none}
.graph>svg.main:active{cursor:grabbing}
.graph .e{fill:none;stroke:var(--soft);stroke-opacity:.5;stroke-width:1.1}
.graph .far-e{stroke-opacity:.13}
.graph .a{fill:var(--soft);fill-opacity:.75;stroke:none}
.graph .hot{fill:none;stroke:var(--accent);stroke-width:2}
.graph .n rect{fill:color-mix(in srgb,var(--c) 15%,var(--panel));stroke:var(--c);stroke-width:1.2}
.graph .n .bar{stroke:none;fill:var(--c)}
.graph .n.view rect.box,.graph .n.data rect.box{stroke-dasharray:3 2}
.graph .n.out rect.box{stroke-width:2.6}
.graph .n{cursor:pointer}
.graph .n:hover rect.box{stroke-width:2.4}
.graph .n.sel rect.box{stroke:var(--accent);stroke-width:3;fill:color-mix(in srgb,var(--accent) 22%,var(--panel))}
.graph .n.hit rect.box{stroke:var(--accent);stroke-width:3}
.graph text{fill:var(--ink);font:600 12px system-ui,sans-serif;pointer-events:none}
.graph text.s{font-weight:400;font-size:10.5px;fill:var(--soft)}
.graph .far text{display:none}.graph .far .n rect.box{fill:var(--c);stroke:none}
.graph .mini{position:absolute;right:10px;top:10px;background:var(--panel);border:1px solid var(--line);border-radius:6px;opacity:.94;cursor:pointer}
.mini path{fill:var(--soft)}.mini rect{fill:var(--accent);fill-opacity:.15;stroke:var(--accent);vector-effect:non-scaling-stroke}
.bar-line{display:flex;gap:6px;align-items:center;flex-wrap:wrap}
.scroll{max-height:680px;overflow:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:5px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{position:sticky;top:0;background:var(--panel);cursor:pointer;font-weight:600;font-size:12px;color:var(--soft);box-shadow:0 1px var(--line);border:0;z-index:1}
th:hover{color:var(--ink)}th.by::after{content:" \25be"}th.by.up::after{content:" \25b4"}
td.l,th.l{text-align:left}td.k{text-align:left;white-space:normal;min-width:260px;overflow-wrap:anywhere}
tbody tr.r{cursor:pointer}tbody tr.r:hover{background:var(--hover)}tbody tr.sel{background:color-mix(in srgb,var(--accent) 14%,var(--panel))}
.chip{display:inline-block;border-radius:5px;padding:0 7px;font-size:11.5px;font-weight:600;color:var(--ink);background:color-mix(in srgb,var(--c) 26%,var(--panel));border:1px solid var(--c)}
td .lab{font-weight:650;margin-right:6px}
td.code{white-space:normal;text-align:left;background:var(--code);padding:12px 16px}
.code h4{margin:8px 0 4px;font-size:12px;color:var(--soft);font-weight:600}.code h4:first-child{margin-top:0}
pre{margin:0;font:12px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;max-height:420px;overflow:auto;white-space:pre}
details summary{cursor:pointer;font-size:12px;color:var(--soft);font-weight:600;margin:8px 0 4px}
.memory{padding:14px 16px;overflow-x:auto}.memory svg{min-width:760px;width:100%;display:block}
#tip{position:fixed;z-index:9;pointer-events:none;background:var(--ink);color:var(--page);padding:6px 10px;border-radius:6px;font-size:12px;white-space:pre-line;max-width:460px;display:none;box-shadow:0 4px 16px #0004}
)css";

const char* const kBody = R"html(
<main>
<h1 id="title"></h1><p class="soft" id="subtitle"></p>
<div class="cards" id="cards"></div>
<div class="share" id="share"></div><div class="legend" id="legend"></div>
<section><header><h2>Memory over time</h2><p class="soft">Hover a rectangle for its buffer. Inputs and outputs lie outside of the arena.</p></header><div class="memory" id="memory">)html"
                          R"html(</div></section>
<section><header><h2>After: the plan</h2><p class="soft">A box a step, an edge where one reads what another wrote. A thick border writes an output. Click to find its nodes and its code.</p>
<div class="bar-line" id="after-bar"></div></header><div class="graph" id="after"></div></section>
<section><header><h2>Before: the graph</h2><p class="soft" id="before-note"></p>
<div class="bar-line" id="before-bar"></div></header><div class="graph" id="before"></div></section>
<section><header><h2>Kernels</h2><p class="soft">Click a row for its operands and its generated code; a heading to sort.</p>
<input type="search" id="filter" placeholder="filter kernels" aria-label="filter kernels"></header>
<div class="scroll"><table><thead id="thead"></thead><tbody id="tbody"></tbody></table></div></section>
</main>
<div id="tip"></div>
)html";

}  // namespace caldera::explain_page
