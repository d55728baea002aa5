# The client that Anthropic publishes for JavaScript talks to caldera serve.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
require_node_package @anthropic-ai/sdk

make_chat_model
start_server --api-key sesame

cat >"$work/talk.cjs" <<'JAVASCRIPT'
const Anthropic = require("@anthropic-ai/sdk");
const assert = require("assert");
const client = new Anthropic({baseURL: process.argv[2], apiKey: "sesame", maxRetries: 0});
const messages = [{role: "user", content: "Hello"}];
(async () => {
  const model = (await client.models.list()).data[0].id;
  const whole = await client.messages.create({model, messages, max_tokens: 20, temperature: 0});
  assert.equal(whole.role, "assistant");
  assert.equal(whole.content[0].type, "text");
  assert.equal(whole.stop_reason, "max_tokens");
  assert.equal(whole.usage.output_tokens, 20);
  const events = [];
  for await (const event of await client.messages.create({model, messages, max_tokens: 20, temperature: 0, stream: true})) events.push(event.type);
  assert.equal(events[0], "message_start");
  assert.equal(events.at(-1), "message_stop");
  const stream = client.messages.stream({model, messages, max_tokens: 20, temperature: 0, system: "Be short."});
  let text = "";
  stream.on("text", piece => { text += piece; });
  const last = await stream.finalMessage();
  assert.equal(text, last.content[0].text);
  const stop = whole.content[0].text.slice(2, 4);
  if (stop.trim()) {
    const stopped = await client.messages.create({model, messages, max_tokens: 20, temperature: 0, stop_sequences: [stop]});
    assert.equal(stopped.stop_reason, "stop_sequence");
    assert.equal(stopped.stop_sequence, stop);
  }
  const tools = [{name: "add", description: "adds", input_schema: {type: "object", properties: {a: {type: "integer", minimum: 0}}, required: ["a"], additionalProperties: false}}];
  const called = await client.messages.create({model, messages, max_tokens: 200, tools, tool_choice: {type: "any"}});
  assert.equal(called.stop_reason, "tool_use");
  const call = called.content.find(block => block.type === "tool_use");
  assert.equal(call.name, "add");
  assert.ok(Number.isInteger(call.input.a));
  const streamed = await client.messages.stream({model, messages, max_tokens: 200, tools, tool_choice: {type: "tool", name: "add"}}).finalMessage();
  assert.ok(Number.isInteger(streamed.content.find(block => block.type === "tool_use").input.a));
  const answered = await client.messages.create({model, max_tokens: 5, tools, messages: [...messages,
    {role: "assistant", content: [{type: "tool_use", id: call.id, name: "add", input: call.input}]},
    {role: "user", content: [{type: "tool_result", tool_use_id: call.id, content: "2"}]}]});
  assert.ok(answered.usage.input_tokens > 0);
  const counted = await client.messages.countTokens({model, messages});
  const {usage} = await client.messages.create({model, messages, max_tokens: 1});
  assert.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  await assert.rejects(client.messages.create({model: "none", messages, max_tokens: 1}), Anthropic.NotFoundError);
  await assert.rejects(client.messages.create({model, messages, max_tokens: 0}), Anthropic.BadRequestError);
  const stranger = new Anthropic({baseURL: process.argv[2], apiKey: "x", maxRetries: 0});
  await assert.rejects(stranger.messages.create({model, messages, max_tokens: 1}), Anthropic.AuthenticationError);
  // What streams say is what whole answers say, whatever is asked for: 20 calls.
  for (const options of [{}, {system: "S"}, {system: [{type: "text", text: "S"}]}, {top_k: 1}, {top_p: 0.5}, {stop_sequences: ["e", "a"]},
                         {metadata: {user_id: "u"}}, {tools, tool_choice: {type: "none"}}, {max_tokens: 3},
                         {messages: [...messages, {role: "assistant", content: "a"}, {role: "user", content: [{type: "text", text: "b"}]}]}]) {
    const asked = {model, messages, max_tokens: 20, temperature: 0, ...options};
    const one = await client.messages.create(asked);
    const same = await client.messages.stream(asked).finalMessage();
    assert.deepEqual(same.content, one.content, JSON.stringify(options));
    assert.equal(same.stop_reason, one.stop_reason);
    assert.equal(same.usage.output_tokens, one.usage.output_tokens);
  }
  // A loop of 20 tools over ten turns, whose results go back, whole and as streams by turns.
  const many = Array.from({length: 20}, (_, i) => ({name: `tool_${i}`, description: "does it", input_schema: {type: "object",
    properties: {a: {type: "integer", minimum: 0, maximum: 9}}, required: ["a"], additionalProperties: false}}));
  const said = [...messages];
  for (let turn = 0; turn < 10; ++turn) {
    const asked = {model, messages: said, tools: many, tool_choice: {type: "any"}, max_tokens: 150, temperature: 1};
    const message = turn % 2 ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
    assert.equal(message.stop_reason, "tool_use");
    const call = message.content.find(block => block.type === "tool_use");
    assert.match(call.name, /^tool_1?[0-9]$/);
    assert.ok(Number.isInteger(call.input.a) && call.input.a >= 0 && call.input.a <= 9);
    said.push({role: "assistant", content: message.content},
              {role: "user", content: [{type: "tool_result", tool_use_id: call.id, content: `r${turn}`}]});
  }
})().catch(error => { console.error(error); process.exit(1); });
JAVASCRIPT
node "$work/talk.cjs" "$url" || fail "$(cat "$work/server.log")"
stop_server
