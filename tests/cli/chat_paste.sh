# What is pasted into `caldera chat` is one message, whatever lines it has; a full context forgets what was said first.
. tests/support/cli.sh
. tests/support/tiny_model.sh
command -v python3 >/dev/null || { echo "skipped: no python3 for a terminal"; exit 77; }

make_model
cat >"$work/base/tokenizer_config.json" <<'END'
{"chat_template": "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"}
END

cat >"$work/talk.py" <<'PYTHON'
import os, pty, select, sys, time
program, model, saved = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.environ.update(LC_ALL="C.UTF-8", TERM="xterm")
    os.execv(program, [program, "chat", "--model", model, "--device", "cpu", "--max-tokens", "2"])
shown = b""
def wait(text):
    global shown
    end = time.time() + 30
    while text not in shown:
        assert time.time() < end, shown
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 4096)
    shown = shown[shown.index(text) + len(text):]
def wait_for_line():  # what is written between two lines meets a terminal that has not been set yet
    wait(b"[?2004l")
    wait(b"[?2004h")
    wait(b"> ")
end = time.time() + 30
while b"> " not in shown and time.time() < end:
    shown += os.read(terminal, 4096)
if b"[?2004h" not in shown:
    sys.exit(77)  # without libedit lines cannot be edited
wait(b"> ")
os.write(terminal, b"say \x1b[200~one\rtwo\n\tthree\n\x1b[201~")
wait("three".encode())
time.sleep(0.2)
os.write(terminal, b"\x1b[D\x1b[Cend\r")
wait_for_line()
os.write(terminal, f"/save {saved}\r".encode())
wait_for_line()
os.write(terminal, b"\x04")
os.waitpid(child, 0)
PYTHON
code=0
timeout 120 python3 "$work/talk.py" "$CALDERA_BIN" "$work/base" "$work/saved.json" >"$work/talk" 2>&1 || code=$?
case $code in
  0) tr -d ' \n' <"$work/saved.json" | grep -q '"content":"sayone\\ntwo\\n\\tthree\\nend"' || fail "$(cat "$work/saved.json")" ;;
  77) ;;
  *) fail "$(cat "$work/talk")" ;;
esac

# 64 positions: "uaaaaaaaaaa" and an answer of "a" and two bytes are 14 tokens a turn.
printf 'aaaaaaaaaa\nbbbbbbbbbb\ncccccccccc\ndddddddddd\neeeeeeeeee\nffffffffff\n/save %s\n' "$work/forgot.json" |
  "$CALDERA_BIN" chat --model "$work/base" --device cpu --max-tokens 2 >"$work/stdout" 2>"$work/stderr" ||
  fail "$(cat "$work/stderr")"
grep -q 'nearly full' "$work/stderr" || fail "$(cat "$work/stderr")"
grep -q 'what was said first is forgotten' "$work/stderr" || fail "$(cat "$work/stderr")"
grep -q 'ffffffffff' "$work/forgot.json" || fail "$(cat "$work/forgot.json")"
grep -q 'aaaaaaaaaa' "$work/forgot.json" && fail "$(cat "$work/forgot.json")"
exit 0
