# The page of caldera serve in headless Chromium, with a real model behind it.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the browser"; exit 77; }
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "skipped: no Chromium"; exit 77; }

make_chat_model
start_server --context 400 --api-key sesame
cat >"$work/page.py" <<'PYTHON'
import base64, json, os, sys
sys.path.insert(0, "tests/support")
from chromium import Page
program, work, url = sys.argv[1:]
HELPERS = """
  window.answers = () => document.querySelectorAll('.turn').length === messages.length ?
    messages.filter(one => one.role === 'assistant').map(one => one.content) : [];
  window.press = (label, at) => { const found = [...document.querySelectorAll('button')].filter(b => b.textContent === label);
    found.at(at ?? -1).click(); };
  window.say = text => { document.getElementById('input').value = text; document.getElementById('form').requestSubmit(); };
  window.set = (id, value) => { const node = document.getElementById(id); node.value = value; node.dispatchEvent(new Event('change')); };
  window.idle = () => document.getElementById('stop').hidden; true"""
def shot(page, name):
    if os.environ.get("SHOTS"):
        with open(f"{os.environ['SHOTS']}/{name}.png", "wb") as file:
            file.write(base64.b64decode(page.send("Page.captureScreenshot")["data"]))
for width in (1000, 360):
    page = Page(program, f"{work}/browser{width}", width, 740)
    try:
        page.go(url)
        page.run(HELPERS)
        # Without the key there are no models, and the page says so.
        page.until("document.getElementById('empty').textContent.includes('API key')")
        page.errors.clear()
        page.run("set('key', 'sesame')")
        page.until("document.getElementById('model').value === 'base'")
        page.run("set('max_tokens', '30'); set('temperature', '0'); set('system', 'S')")
        page.run("say('1 plus')")
        first = page.until("idle() && answers().length === 1 && answers()[0]")
        page.run("say('2 plus')")
        page.until("idle() && answers().length === 2")
        shot(page, f"talk{width}")
        # Again: the same question, and greedy, the same answer; what came before is there still.
        last = page.run("answers()[1]")
        page.run("press('Again')")
        page.until("idle() && answers().length === 2 && answers()[1]")
        assert page.run("answers()") == [first, last], page.run("answers()")
        # Edit: the question comes back, and what followed is gone.
        page.run("press('Edit', 0)")
        assert page.run("document.getElementById('input').value") == "1 plus" and page.run("answers()") == []
        page.run("say('1 plus')")
        assert page.until("idle() && answers().length === 1 && answers()[0]") == first
        # Stop, as soon as there is something: what has come stays. (On a slow line, for the model is fast; a seed may end at once.)
        page.send("Network.enable")
        page.send("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=4000, uploadThroughput=-1)
        page.run("set('max_tokens', ''); set('temperature', '1.5')")
        for seed in range(9):
            page.run(f"set('seed', '{seed}'); say('3 plus')")
            page.until("idle() || document.querySelectorAll('.turn.assistant .text')[1]?.textContent.length > 2")
            page.run("document.getElementById('stop').click()")
            page.until("idle()")
            if page.run("[...document.querySelectorAll('.foot')].at(-1).textContent.includes('stopped') && answers().length === 2"):
                break
            page.run("if (answers().length === 2) press('Edit')")
        assert 0 < len(page.run("answers()[1]")) < 300
        page.send("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        # Conversations are kept: another one, and back after the page was loaded again.
        page.run("document.getElementById('reset').click()")
        assert page.run("answers()") == []
        page.go(url + "?again")
        page.run(HELPERS)
        page.run("set('key', 'sesame')")
        page.until("document.getElementById('model').value === 'base'")
        assert page.until("answers().length === 2 && answers()[0]") == first
        assert page.run("document.getElementById('temperature').value") == "1.5", "settings are kept"
        # Markdown becomes elements, and HTML stays text; nothing is wider than the page.
        made = page.run("""(() => { const text = '# Head\\n\\n**bold** `code` <b>x</b> <script>1</script>\\n\\n- one\\n  - two\\n\\n1. a\\n\\n' +
          '```python\\nprint(' + 'x'.repeat(200) + ')\\n```\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\\n> said\\n\\n[l](https://e.org) [j](javascript:1)';
          const node = document.querySelectorAll('.turn.assistant .text')[1]; node.replaceChildren(markdown(text));
          const count = name => node.querySelectorAll(name).length;
          return ['h3', 'strong', 'code', 'b', 'script', 'li', 'ol', 'pre', 'td', 'blockquote', 'a'].map(count); })()""")
        assert made == [1, 1, 2, 0, 0, 3, 1, 1, 2, 1, 1], made
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
        shot(page, f"markdown{width}")
        for scheme in ("dark", "light"):
            page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            page.until(f"document.documentElement.dataset.theme === '{scheme}'")
        errors = [error for error in page.errors if "401" not in error]  # before the key was there
        assert not errors, errors
    finally:
        page.close()
PYTHON
python3 "$work/page.py" "$chromium" "$work" "$url" || fail "$(tail -n 20 "$work/server.log")"
stop_server
