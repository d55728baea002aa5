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
})().catch(error => { console.error(error); process.exit(1); });
JAVASCRIPT
node "$work/talk.cjs" "$url" || fail "$(cat "$work/server.log")"
stop_server
